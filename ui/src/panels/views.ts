// What commands answer, as `crates/relay` and `crates/host` write it. Times here are seconds since 1970 unless they say otherwise.

export type Role = 'reviewer' | 'editor' | 'operator' | 'owner'
export type Profile = 'review' | 'edit' | 'agent' | 'full'

export const ROLES: Role[] = ['reviewer', 'editor', 'operator', 'owner']
export const PROFILES: Profile[] = ['review', 'edit', 'agent', 'full']

export interface GrantView {
  id: string
  account: string
  device: string
  scopes: string
  created: number
  /** Absent where the relay does not tell. */
  last_used?: number | null
}

export interface ClientView {
  id: string
  /** What it calls itself: a claim. */
  name: string
  created: number
  /** Absent where the relay does not tell. */
  last_used?: number | null
  grants: GrantView[]
}

export interface TokenView {
  id: string
  name: string
  account: string
  device: string
  /** A cap below the account's role. */
  role: Role | null
  created: number
  expires: number
  last_used?: number | null
}

/** A token at its making: the only time it is shown. */
export interface NewToken extends TokenView {
  token: string
}

export interface AccountView {
  id: string
  name: string
  role: Role
  active: boolean
}

export interface DeviceView {
  id: string
  name: string
  account: string
  /** Whether `/mcp` means it. */
  default: boolean
  connected: boolean
  /** When another computer with its credential was last refused. */
  in_use: number | null
  created: number
  revoked: number | null
}

export interface DeviceCode {
  code: string
  /** Seconds. */
  expires_in: number
}

export interface Approved {
  client: string
  redirect_host: string
  account: string
}

export interface Report {
  version: string
  platform: string
  ok: boolean
  checks: Check[]
}

export interface Check {
  name: string
  state: 'ok' | 'warning' | 'failed' | 'skipped'
  found: string
  advice?: string
}

export type DrillLine =
  | { event: 'step'; step: string; at_ms: number; text: string }
  | ({ event: 'verdict' } & DrillVerdict)

export interface DrillVerdict {
  verdict: 'delivered_once' | 'reported' | 'failed'
  passed: boolean
  call: string | null
  cut_ms: number
  recovered_ms: number | null
  took_ms: number
  text: string
}

export interface ConfigView {
  path: string
  valid: boolean
  /** What is in force, defaults included. */
  config: Record<string, Record<string, unknown>>
  /** What the file sets itself. */
  set: Record<string, unknown>
}
