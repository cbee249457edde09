// Made by `make types` from the Rust types of the same names; change them there.
// Over 500 lines because nobody writes them, and one file is what the window imports.

/** One account of the relay. Base wire: `^acct_[A-Za-z0-9_-]{20,96}$`. */
export type AccountId = string;

/** An account as people see it. */
export type AccountView = {
  /** Its id. */
  id: AccountId,
  /** Its name, unique. */
  name: string,
  /** What it may do. */
  role: Role,
  /** Whether it may be used. */
  active: boolean,
  /** Counts its changes. */
  version: number,
  /** Whether it has a password; without one only local approval signs in. */
  has_password: boolean,
  /** The device that `/mcp` means. */
  default_device: DeviceId | null,
  /** Seconds since 1970. */
  created: number,
};

/** What a person can do about a warning. */
export type Action = "try_now" | "enroll" | "edit_config" | "restart" | "update" | "start" | "read_log";

/** The process that hosts the engines. */
export type AppStatus = {
  /** Version of this build. */
  version: string,
  /** Process id; 0 when nothing runs. */
  pid: number,
  /** When the process started. */
  started_at: number,
  /** Address an MCP client on this machine (or of the configured relay) uses. */
  mcp: string | null,
  /** Name of the policy's profile. */
  policy: string | null,
  /** The folder file tools work in. */
  workspace: string | null,
  /** Whether the tray application starts at login, as the system has it; `None` where there is none to start. */
  autostart: boolean | null,
  /** The engines that exist in this process, and whether each runs. */
  engines: { [key in Engine]?: EngineState },
};

/** A request that was just approved. */
export type Approved = {
  /** What the client calls itself. */
  client: string,
  /** Where the browser goes afterwards. */
  redirect_host: string,
  /** Whose rights it will use. */
  account: string,
};

/** Which calls ask the person at this machine before they run. */
export type AskConfig = {
  /** Clients by id, as `holdfast client list` shows them; `"*"` means all. Without any, nothing is asked. */
  clients: Array<string>,
  /** Which tools ask. */
  tools: AskTools,
};

/** Tools that ask. Those that only stop something or look at Holdfast itself never do. */
export type AskTools = "runs" | "writes" | "all";

/** The base peer this build can speak to, unmodified. */
export type BasePeer = "machine-bridge-mcp@1.2.10";

/** An agent and its channel: what its transcript says is posted there, and what people write there reaches it. */
export type BindingConfig = {
  /** Its name: letters, digits and `-`. */
  name: string,
  /** The channel's id; its threads belong to it. */
  channel: string,
  /** The transcript's path. Without it the newest interactive session of `project` is followed. */
  transcript: string | null,
  /** The session whose transcript is followed, by its id. */
  session: string | null,
  /** The folder the agent works in. */
  project: string | null,
  /** How messages reach the agent. Without it they do not: the channel only mirrors it. */
  deliver: Delivery | null,
  /** For `command`: a program and its arguments; `{session}` and `{project}` are filled in. The message is its input. */
  command: Array<string>,
  /** For `tmux`: the pane, as `tmux -t` takes it. */
  pane: string | null,
  /** For `tmux`: the key that stops the agent. */
  stop_key: string | null,
  /** Only messages that name the bot count. */
  mention: boolean,
  /** If not empty: only these of the people who may speak at all. */
  people: Array<string>,
};

/** An agent and its channel. */
export type BindingStatus = {
  /** Its name in the configuration. */
  name: string,
  /** The channel's id. */
  channel: string,
  /** The channel as people call it, once the service has told. */
  channel_name: string | null,
  /** The transcript that is followed; `None` while none was found. */
  transcript: string | null,
  /** The session that writes it. */
  session: string | null,
  /** How messages reach the agent; `None`: they do not, the channel only mirrors it. */
  adapter: string | null,
  /** Messages of people that the agent does not have yet. */
  waiting_in: number,
  /** Messages of the agent that are not posted yet. */
  waiting_out: number,
  /** When one was last posted. */
  last_sent: number | null,
  /** Why nothing is posted until a person lets it be tried again, in plain words. */
  parked: string | null,
  /** Why what waits is not posted or delivered yet, in plain words. */
  why: string | null,
  /** When that is tried again. */
  next_try_at: number | null,
  /** Entries of the transcript that were not posted, because they were too old or too many. */
  skipped: number,
  /** Lines of its transcript that were too long or could not be read, since this holder began. */
  unread: number,
  /** How often since then a part of it may be missing. */
  gaps: number,
};

/** One call's arguments and result. */
export type CallBody = {
  /** The call. */
  call: CallId,
  /** What was asked, as JSON as far as it goes. */
  arguments: Excerpt,
  /** How it ended; absent while it runs. */
  result: Excerpt | null,
};

/** Calls as this device sees them. */
export type CallCounts = {
  /** Received and not yet finished, detached ones included. */
  pending: number,
  /** Of the pending: those whose link is gone. */
  detached: number,
  /** Finished, and the relay has not yet confirmed the result. */
  queued_results: number,
  /** Age of the oldest pending call, in milliseconds. */
  oldest_ms: number | null,
  /** Pending calls by tool. */
  by_tool: { [key in string]: number },
};

/** One call on the link. Base wire: `^call_[A-Za-z0-9_-]{8,240}$`; ours have 32 random bytes. */
export type CallId = string;

/** One call, folded from its steps. */
export type CallRow = {
  /** The call. */
  call: CallId,
  /** The tool's name. */
  tool: string,
  /** Where it stands. */
  state: CallState,
  /** Time of its first step that is still known. */
  at: number,
  /** From the first step to the end of the call, in milliseconds. */
  took_ms: number | null,
  /** The error's code, if it ended with one. */
  code: Code | null,
  /** Who asked. */
  client: string | null,
  /** One line on what ran. */
  summary: string | null,
  /** The steps, oldest first, with their times. */
  steps: Array<[Step, number]>,
};

/** Where a call stands, in the words of the window. */
export type CallState = "running" | "detached" | "held" | "delivered" | "cancelled" | "lost";

/** What is remembered of calls. */
export type CallsConfig = {
  /** Keep arguments and results of recent calls, in memory only, cut and without what looks like a secret. */
  keep_bodies: boolean,
};

/** The bot at a chat service. `holdfast channel setup` writes it. */
export type ChannelConfig = {
  /** The chat service. Without it there is no channel. */
  backend: ChannelService | null,
  /** The bot's id. Its token is kept among the secrets. */
  bot: string | null,
  /** What a start does about the bot's seat. */
  on_start: OnStart,
  /** Another address of the service's API than its own. */
  base_url: string | null,
  /** Another address of Discord's gateway than the one it names itself. */
  gateway_url: string | null,
  /** Who may talk to the agents, by their ids at the service. Empty: nobody; `holdfast channel pair` adds one. */
  people: Array<string>,
  /** The binding whose agent is meant where the bot is alone with one of them. Without it nothing is heard there. */
  direct: string | null,
  /** A program that writes down what is said in a voice message: the file's path is its last argument, the text its output. */
  voice: Array<string>,
  /** Which agent speaks in which channel. */
  binding: Array<BindingConfig>,
};

/** What happened to the channel; each is said once, when it happens. */
export type ChannelNotice = "acquired" | "superseded" | "failed" | "parked" | "refused" | "unknown" | "skipped";

/** A chat service. */
export type ChannelService = "discord" | "telegram";

/** One finding. */
export type Check = {
  /** What was looked at; stable. */
  name: string,
  /** How it is. */
  state: CheckState,
  /** What was found, in one line. */
  found: string,
  /** What to do about it. */
  advice?: string | null,
};

/** How a finding is. */
export type CheckState = "ok" | "warning" | "failed" | "skipped";

/** A registered client with its grants. */
export type ClientView = {
  /** Its client id. */
  id: string,
  /** What it calls itself. A claim. */
  name: string,
  /** Seconds since 1970. */
  created: number,
  /** What it was granted; empty for one that only registered. */
  grants: Array<GrantView>,
};

/** A stable error code. The first group is the base wire's, the second is ours. */
export type Code = "cancelled" | "timeout" | "authentication_failed" | "authorization_denied" | "policy_denied" | "invalid_request" | "not_found" | "conflict" | "limit_exceeded" | "permission_denied" | "path_boundary" | "network_error" | "protocol_error" | "unavailable" | "integrity_error" | "execution_failed" | "internal_error" | "busy" | "outcome_unknown" | "result_too_large" | "storage_full" | "lease_expired" | "in_progress";

/** One request. */
export type Command = { "command": "start",
  /** Which; absent means all. */
  engine?: Engine | null,
} | { "command": "stop",
  /** Which; absent means all. */
  engine?: Engine | null,
} | { "command": "quit",
  /** Does not wait for calls. */
  now?: boolean,
} | { "command": "try_now" } | { "command": "reload" } | { "command": "restart" } | { "command": "policy_set",
  /** The new profile. */
  profile: Profile,
} | { "command": "approve",
  /** Eight base32 characters. */
  code: Secret,
} | { "command": "deny",
  /** The id in [`crate::status::Consent`]. */
  consent: string,
} | { "command": "account_add",
  /** Its name. */
  name: string,
  /** What it may do. */
  role: Role,
  /** For signing in at the consent page; absent means local approval only. */
  password?: Secret | null,
} | { "command": "account_list" } | { "command": "device_code",
  /** The account's name; absent means the only account. */
  account?: string | null,
} | { "command": "device_list" } | { "command": "device_rename",
  /** The device, by id or name. */
  device: string,
  /** Its new name. */
  name: string,
} | { "command": "device_default",
  /** The device, by id or name. */
  device: string,
} | { "command": "device_revoke",
  /** The device, by id or name. */
  device: string,
} | { "command": "client_list" } | { "command": "client_revoke",
  /** The client's id, or one grant's, as listed. */
  client: string,
} | { "command": "token_create",
  /** What it is for. */
  name: string,
  /** At most this role; absent means the account's own. */
  role?: Role | null,
  /** By id or name; absent means the account's default device. */
  device?: string | null,
  /** The account's name; absent means the only account. */
  account?: string | null,
  /** Days until it expires; absent means the default. */
  days?: number | null,
} | { "command": "device_token",
  /** The relay's address. */
  relay: string,
  /** The credential. */
  token: Secret,
} | { "command": "token_list" } | { "command": "token_revoke",
  /** Its id, as listed. */
  token: string,
} | { "command": "cut_all_access" } | { "command": "answer",
  /** The question's id. */
  question: string,
  /** Whether it may run. */
  allow: boolean,
  /** The same answer for this client until the process ends. */
  remember?: boolean,
} | { "command": "operation_cancel",
  /** Its id. */
  operation: string,
} | { "command": "operation_dismiss",
  /** Its id. */
  operation: string,
} | { "command": "seat_take",
  /** Waits until it is free instead of taking it from a holder that lives. */
  wait?: boolean,
  /** Ends the holder's process if it lives and does not answer: the answer to the question in `seat.frozen`. */
  force?: boolean,
} | { "command": "seat_release" } | { "command": "seat_show" } | { "command": "channel_setup",
  /** The chat service: `discord` or `telegram`; absent: the one of which the token is. */
  backend?: string | null,
  /** The bot's token. */
  token: Secret,
  /** Another address of the service's API than its own; `https`, or `http` to this machine. Absent: as configured. */
  base_url?: string | null,
  /** Another address of Discord's gateway than the one it names itself. Absent: as configured. */
  gateway_url?: string | null,
} | { "command": "channel_remove" } | { "command": "channel_bind",
  /** Its name. */
  name: string,
  /** Key of `[[channel.binding]]` → new value; `null` takes the key away. */
  set: Record<string, unknown>,
} | { "command": "channel_unbind",
  /** Its name. */
  name: string,
} | { "command": "channel_pair",
  /** As the bot told it. */
  code?: Secret | null,
} | { "command": "channel_admit",
  /** By their id at the service. */
  person: string,
} | { "command": "channel_dismiss",
  /** By their id at the service. */
  person: string,
} | { "command": "channel_retry",
  /** Its id; absent means every channel. */
  channel?: string | null,
  /** Also what may be there already: it may then stand there twice. */
  unknown?: boolean,
} | { "command": "channel_test",
  /** Its name. */
  binding: string,
} | { "command": "channel_check",
  /** A channel that no binding has yet. */
  channel?: string | null,
} | { "command": "channel_candidates",
  /** The folder an agent works in; absent: wherever. */
  project?: string | null,
} | { "command": "configure",
  /** Dotted key → new value; `null` takes the key away. */
  set: Record<string, unknown>,
} | { "command": "autostart",
  /** Which of the two. */
  on: boolean,
} | { "command": "open_logs" };

/** Why a command was not done. */
export type CommandError = {
  /** What programs match on. */
  code: string,
  /** One sentence for people. */
  message: string,
};

/** The configuration file. Everything has a default; an empty file is a good one. */
export type Config = {
  /** The relay: a remote one, or the embedded one. */
  relay: RelayConfig,
  /** How daemon and relay speak to each other. */
  link: LinkConfig,
  /** How the relay answers clients. */
  mcp: McpConfig,
  /** What clients may do on this machine. */
  policy: PolicyConfig,
  /** Which calls ask the person at this machine before they run. */
  ask: AskConfig,
  /** Where file tools work. */
  workspace: WorkspaceConfig,
  /** From where files may be fetched. */
  sync: SyncConfig,
  /** To which ports of this machine connections may be opened for clients. */
  forward: ForwardConfig,
  /** When the machine may fall asleep. */
  power: PowerConfig,
  /** What is remembered of calls. */
  calls: CallsConfig,
  /** The bot at a chat service. */
  channel: ChannelConfig,
  /** Which notices the desktop shows. */
  notices: NoticesConfig,
  /** Where this machine keeps its credentials. */
  secrets: SecretsConfig,
  /** What is logged. */
  log: LogConfig,
};

/** The configuration, as the window shows it. */
export type ConfigView = {
  /** The file. */
  path: string,
  /** Whether what the file says can be used; one that is not there can. */
  valid: boolean,
  /** Why it cannot be used, with the place. */
  error: string | null,
  /** What is in force: of the running engines, command line included; else what the next start would take. */
  config: Config,
  /** What the file sets: dotted key → value. */
  set: Record<string, unknown>,
};

/** A client that waits at its browser page for the owner to type the page's code. The code itself is never here. */
export type Consent = {
  /** Names it in [`crate::command::Command::Deny`]. */
  id: string,
  /** What the client calls itself. A claim. */
  client: string,
  /** Where its browser goes afterwards. */
  redirect_host: string,
  /** Whose rights it would get. */
  account: string,
  /** What it asks for. */
  scopes: string,
  /** When it lapses. */
  expires_at: number,
};

/** How messages reach an agent. */
export type Delivery = "command" | "tmux" | "mcp" | "inbox";

/** An enrolment code; shown this once. */
export type DeviceCode = {
  /** 20 base32 characters. */
  code: string,
  /** Seconds. */
  expires_in: number,
};

/** One enrolled machine, as the relay names it. */
export type DeviceId = string;

/** A device as people see it. */
export type DeviceView = {
  /** Its id; `/mcp/{id}` reaches it. */
  id: DeviceId,
  /** What it is called. */
  name: string,
  /** The account it belongs to. */
  account: string,
  /** Whether `/mcp` means it. */
  default: boolean,
  /** Whether its link is ready now. */
  connected: boolean,
  /** When another computer with its credential was last refused, in seconds since 1970, while that one keeps trying. */
  in_use: number | null,
  /** Seconds since 1970. */
  created: number,
  /** When it was revoked, in seconds since 1970. */
  revoked: number | null,
};

/** One line of a drill. */
export type DrillLine = { "event": "step",
  /** What: `asked`, `cut`, `answered`, or a step of the call. */
  step: string,
  /** Milliseconds since the drill began. */
  at_ms: number,
  /** The same in words. */
  text: string,
} | { "event": "verdict",
  /** What came of it. */
  verdict: Verdict,
  /** Whether the promise was kept. */
  passed: boolean,
  /** The drill's call. */
  call: CallId | null,
  /** The cut, in milliseconds. */
  cut_ms: number,
  /** From the end of the cut to the answer, in milliseconds. */
  recovered_ms: number | null,
  /** From asking to the answer, in milliseconds. */
  took_ms: number,
  /** One sentence. */
  text: string,
};

/** What kind of drill. */
export type DrillOrder = {
  /** For how long the link is cut, in milliseconds; at most twice [`limits::DRILL_WAIT_MAX`], less a second. */
  cut_ms: number,
  /** Also when real calls are in flight. */
  force?: boolean,
};

/** A part of Holdfast that can be started and stopped by itself. */
export type Engine = "relay" | "link" | "worker" | "channels";

/** Whether an engine runs. */
export type EngineState = "running" | "stopping" | "stopped" | "failed";

/** The beginning of a text, at most [`limits::BODY_SHOWN`] bytes. */
export type Excerpt = {
  /** What is shown of it. */
  text: string,
  /** Length of the whole, in bytes. */
  bytes: number,
  /** Whether more follows. */
  cut: boolean,
};

/** To which ports of this machine connections may be opened for clients. */
export type ForwardConfig = {
  /** Ports on 127.0.0.1, as `3000` or `"5000-5009"`; Holdfast's own never count. A reload may take some away, never add
  * any. */
  allow_ports: Array<number | string>,
};

/** Agents, their channels, and what waits between them. Only the process that holds the seat knows what waits; another one
* shows the bindings alone. */
export type ForwarderStatus = {
  /** In the order of the configuration. */
  bindings: Array<BindingStatus>,
  /** Messages that were refused or of which nobody knows whether they were posted, oldest first; at most
  * [`crate::limits::OUTBOX_TROUBLES`]. */
  troubles: Array<TroubleRow>,
  /** Messages to an agent that were perhaps delivered: their senders were asked whether to send them again. */
  perhaps: number,
  /** Who may talk to the agents. */
  people: Array<PersonRow>,
  /** Until when a person who writes to the bot gets a code. */
  pairing_until: number | null,
  /** Messages that are being sent. */
  in_flight: number,
  /** Why nothing can be stored, and so nothing passes; in plain words. */
  stuck: string | null,
};

/** What one client was granted. */
export type GrantView = {
  /** Its id; may be revoked alone. */
  id: string,
  /** Whose rights it uses. */
  account: string,
  /** The device it reaches. */
  device: DeviceId,
  /** What was consented to. */
  scopes: string,
  /** Seconds since 1970. */
  created: number,
  /** Seconds since 1970, a minute behind at most; `None` if never. */
  last_used: number | null,
};

/** The kind of a request, as lists show it and stores keep it. */
export type Kind = "exec" | "pty_open" | "exec_stdin" | "pty_input" | "pty_resize" | "pty_close" | "file_sync" | "sync_workspace" | "create_project_branch" | "workspace_config" | "port_forward_connect";

/** The execution lease. */
export type LeaseStatus = {
  /** Whether it is in force. */
  held: boolean,
  /** When it ends unless it is renewed; shown as a countdown while it is not. */
  ends_at: number | null,
  /** Whether it is being renewed now: the worker is live. */
  renewed: boolean,
  /** Grows by one each time it expired. */
  generation: number,
};

/** How daemon and relay speak to each other. */
export type LinkConfig = {
  /** Daemon: demand a relay of exactly this name and version, and use no feature of the link. */
  compat: BasePeer | null,
  /** Relay: present this name and version to daemons, and offer no feature. */
  identity: BasePeer | null,
  /** Certificates (PEM) trusted beside the system's when dialling the relay. Nothing turns the checks off. */
  ca_file: string | null,
};

/** Whether this machine can be reached. */
export type LinkState = "stopped" | "connecting" | "healthy" | "blip" | "outage" | "recovering" | "sign_in_needed" | "incompatible";

/** What is logged. */
export type LogConfig = {
  /** The least important level that is written. */
  level: LogLevel,
};

/** How much is logged; the order is from least to most. */
export type LogLevel = "error" | "warn" | "info" | "debug";

/** How the relay answers clients. */
export type McpConfig = {
  /** After this many milliseconds a call that still runs is answered with a handle, to a client that takes no tasks; 0: never. */
  patience_ms: number,
};

/** A personal access token at its making. */
export type NewToken = {
  /** The bearer token. Shown this once. */
  token: string,
  /** Its id. */
  id: string,
  /** The name it was given. */
  name: string,
  /** Whose rights it uses. */
  account: string,
  /** The device it reaches. */
  device: DeviceId,
  /** A cap below the account's role, if one was set. */
  role: Role | null,
  /** Seconds since 1970. */
  created: number,
  /** Seconds since 1970. */
  expires: number,
  /** Seconds since 1970, a minute behind at most; `None` if never. */
  last_used: number | null,
};

/** Which notices the desktop shows; all, unless switched off. */
export type NoticesConfig = {
  /** Outages of half a minute and more, and their ends. */
  outages: boolean,
  /** Calls whose outcome is not known. */
  calls_lost: boolean,
  /** Clients that ask to be let in. */
  consents: boolean,
  /** Calls that ask before they run. */
  questions: boolean,
  /** The seat: taken, taken over, given up. */
  seat: boolean,
  /** What could not start. */
  start_failed: boolean,
  /** Once, when the window is closed: Holdfast goes on in the tray. */
  still_running: boolean,
};

/** What happens to a run whose lease expired. */
export type OnLeaseExpiry = "continue" | "stop";

/** What a start does about the seat. */
export type OnStart = "if-vacant" | "take" | "off";

/** One operation in a list. */
export type OperationRow = {
  /** Its id. */
  id: string,
  /** What kind of work it is. */
  kind: Kind,
  /** What it does, in a few words; cleaned and redacted. */
  summary: string,
  /** How it stands. */
  state: State,
  /** Since when it stands so. */
  since: number,
  /** Its exit code, if it ended with one. */
  exit_code: number | null,
  /** Output that the relay has not acknowledged, in bytes. */
  behind_bytes: number,
  /** Since when its program waits for room. */
  stalled_since: number | null,
  /** What happens when the lease ends. */
  on_lease_expiry: OnLeaseExpiry,
  /** Why it failed or what is known of it, in one sentence. */
  note: string | null,
};

/** One time during which the relay was away for longer than a blip. */
export type Outage = {
  /** When the link was lost. */
  started_at: number,
  /** When it was ready again; `None` while it lasts. */
  ended_at: number | null,
  /** Why, in plain words. */
  cause: string | null,
  /** Calls that were in flight and came through. */
  calls_saved: number,
  /** Calls that were in flight and whose outcome is not known. */
  calls_lost: number,
};

/** Somebody who may talk to the agents. */
export type PersonRow = {
  /** As the service names them. */
  id: string,
  /** What people call them, if they wrote or paired while this process held the seat. */
  name: string | null,
};

/** What clients may do on this machine. */
export type PolicyConfig = {
  /** `review`: read. `edit`: and write files. `agent`, the default: and run programs as this user. `full`: everything
  * this user may. A reload may tighten it, never loosen it. */
  profile: Profile | null,
};

/** When the machine may fall asleep. */
export type PowerConfig = {
  /** While calls run and there is mains power, the machine does not fall asleep by itself. Closing the lid or choosing
  * *Sleep* still works. */
  keep_awake: boolean,
};

/** A named policy. */
export type Profile = "review" | "edit" | "agent" | "full";

/** A call that runs only if the person at this machine says so. */
export type Question = {
  /** Names it in the answer. */
  id: string,
  /** When it was asked. */
  at: number,
  /** When it counts as *no*. */
  expires_at: number,
  /** Who asks. */
  client: string | null,
  /** The tool. */
  tool: string,
  /** One line on what would run. Lives in memory only. */
  summary: string | null,
  /** All that was asked for, one argument a line; a line break within one is ⏎. Lives in memory only. */
  text: string | null,
  /** Characters that `text` leaves out at its end. */
  hidden: number,
};

/** The relay: a remote one, or the embedded one. */
export type RelayConfig = {
  /** Address of a remote relay. Without it `holdfast serve` and the tray application embed one. */
  url: string | null,
  /** Where the embedded relay, or `holdfast relay`, listens. */
  listen: string,
  /** The address clients use, when it is not the one that is listened on. Fixes issuer and resource. */
  public_url: string | null,
  /** Certificate chain, PEM. Read again when it changes. */
  tls_cert: string | null,
  /** Private key of `tls_cert`, PEM. */
  tls_key: string | null,
  /** Networks (CIDR) of reverse proxies whose forwarding headers are believed. */
  behind_proxy: Array<string>,
  /** Origins of browser pages that may call this relay, besides its own. */
  allowed_origins: Array<string>,
  /** Largest request of a client, in MiB; at most 16. */
  body_max_mib: number,
};

/** The link to the relay. */
export type RelayStatus = {
  /** Its state. */
  state: LinkState,
  /** Since when. */
  since: number,
  /** Tries to connect since the link was last ready. */
  attempts: number,
  /** Why it is not healthy, in plain words. */
  cause: string | null,
  /** When the next try begins. */
  next_try_at: number | null,
  /** How the relay is reached: `direct`, or the proxy without its credentials. */
  route: string | null,
  /** The relay's address, without credentials. */
  url: string | null,
  /** When detached calls will be given up, if any wait. */
  grace_ends_at: number | null,
};

/** Everything that was looked at. Holds no secret. */
export type Report = {
  /** Version of this build. */
  version: string,
  /** Operating system and architecture. */
  platform: string,
  /** Whether nothing failed. */
  ok: boolean,
  /** The findings, in a fixed order. */
  checks: Array<Check>,
};

/** Rights of an account. Each is capped by the device's own policy. */
export type Role = "reviewer" | "editor" | "operator" | "owner";

/** Who holds the seat. */
export type SeatHolder = {
  /** Whether it is this process. */
  this: boolean,
  /** Its random id. */
  instance: string,
  /** Its process. */
  pid: number,
  /** Its machine's name. */
  host: string,
  /** Since when. */
  since: number,
};

/** What this process does about the seat. */
export type SeatState = "off" | "claiming" | "connecting" | "serving" | "draining" | "standby" | "failed";

/** The seat as this process sees it. */
export type SeatStatus = {
  /** What this process does about it. */
  state: SeatState,
  /** Since when. */
  since: number,
  /** The chat service. */
  backend: string,
  /** The bot, by id. */
  bot: string,
  /** Who holds the seat, this process or another; `None` when nobody does or nobody can tell. */
  holder: SeatHolder | null,
  /** Grows by one with each holder. */
  generation: number,
  /** The channel, as people call it. */
  channel: string | null,
  /** The transcript that is followed. */
  transcript: string | null,
  /** Messages that wait to be sent. */
  waiting: number,
  /** When a message was last sent. */
  last_sent: number | null,
  /** Why it is off, failed or waits, in plain words. */
  reason: string | null,
  /** The reason's code, where it is what is kept on disk: `storage_full` while the disk is full. */
  code: Code | null,
  /** When the next try to connect, or to use the disk, begins. */
  next_try_at: number | null,
  /** A question to the person: the holder lives and does not answer. Only `SeatTake` with `force` ends its process. In
  * `standby` the take is withdrawn, and a holder that wakes keeps the seat; in `claiming` the holder had begun to let go,
  * and the seat is taken when it goes on. */
  frozen: boolean,
  /** The seat is taken as soon as nobody holds it. */
  waits: boolean,
};

/** A password or a code on its way in. Debug output hides it. */
export type Secret = string;

/** Kind of store for credentials. */
export type SecretStore = "auto" | "file";

/** Where this machine keeps its credentials. */
export type SecretsConfig = {
  /** Where they are kept. The variable `HOLDFAST_SECRETS` overrides it. */
  store: SecretStore,
};

/** How bad a warning is; the order is that of the tray's icon. */
export type Severity = "info" | "warning" | "needs_you";

/** How an operation stands, in the order of its life; the last five are ends. */
export type State = "queued" | "received" | "starting" | "running" | "completed" | "failed" | "cancelled" | "expired" | "unknown";

/** Everything a reader needs to draw the product, taken at one moment. */
export type StatusSnapshot = {
  /** Grows by one with every snapshot; a gap in a stream means: fetch a whole snapshot. */
  seq: number,
  /** When it was taken. */
  taken_at: number,
  /** The process. */
  app: AppStatus,
  /** The link to the relay. */
  relay: RelayStatus,
  /** Calls as this device sees them. */
  calls: CallCounts,
  /** Durable operations; `None` where no worker is hosted. */
  worker: WorkerStatus | null,
  /** The seat at the chat service; `None` while no channel is set up. */
  seat: SeatStatus | null,
  /** What passes between agents and channels; `None` while no channel is set up. */
  channels: ForwarderStatus | null,
  /** Clients that wait to be let in, oldest first. */
  consents: Array<Consent>,
  /** Calls that ask before they run, oldest first. */
  questions: Array<Question>,
  /** Outages of the last 24 h, oldest first. */
  outages: Array<Outage>,
  /** What is wrong, worst first. */
  health: Array<Warning>,
};

/** A step of a call as this device sees it. */
export type Step = "received" | "detached" | "rebound" | "finished" | "sent" | "delivered" | "cancelled" | "lost" | "noticed";

/** From where files may be fetched. */
export type SyncConfig = {
  /** Hosts beside the relay, as `files.example.com` or `files.example.com:8443`; always by https, and never an address
  * within a private network. A reload may take some away, never add any. */
  allow_hosts: Array<string>,
};

/** One step of one call, or a notice of the channel. */
export type TimelineEntry = {
  /** Grows by one with every entry of this process. */
  seq: number,
  /** When it happened. */
  at: number,
  /** The call; the same id through all its steps. `None` for what is of no call. */
  call: CallId | null,
  /** The tool's name; `channel` for a notice of the channel. */
  tool: string,
  /** What happened. */
  step: Step,
  /** For [`Step::Finished`]: the error's code; `None` means it went well. */
  code?: Code | null,
  /** Who asked, as the relay names it. */
  client?: string | null,
  /** One line on what ran, such as `npm test`. Lives in memory only: never written to disk or log. */
  summary?: string | null,
  /** For [`Step::Noticed`]: what happened to the channel; the summary says more. */
  notice?: ChannelNotice | null,
};

/** A personal access token as people see it; the token itself is shown once, at its making. */
export type TokenView = {
  /** Its id. */
  id: string,
  /** The name it was given. */
  name: string,
  /** Whose rights it uses. */
  account: string,
  /** The device it reaches. */
  device: DeviceId,
  /** A cap below the account's role, if one was set. */
  role: Role | null,
  /** Seconds since 1970. */
  created: number,
  /** Seconds since 1970. */
  expires: number,
  /** Seconds since 1970, a minute behind at most; `None` if never. */
  last_used: number | null,
};

/** A transcript that an agent on this machine writes. */
export type TranscriptRow = {
  /** Its path. */
  path: string,
  /** Which agent writes it. */
  agent: string,
  /** Its session, where that is known. */
  session: string | null,
  /** The folder the agent works in, where that is known. */
  project: string | null,
  /** The agent still runs, as far as can be told. */
  live: boolean,
  /** When it was last written; `None` while there is no file. */
  modified: number | null,
};

/** A message that a person may let be sent again. */
export type TroubleRow = {
  /** Names it, and nothing else. */
  id: string,
  /** The channel's id. */
  channel: string,
  /** Whether the service may have it: sent again it may stand there twice. */
  unknown: boolean,
  /** Why, in plain words. */
  reason: string,
  /** Its beginning, on one line; at most [`crate::limits::OUTBOX_EXCERPT`] characters. */
  text: string,
};

/** What came of a drill. */
export type Verdict = "delivered_once" | "reported" | "failed";

/** One thing that is wrong now. It disappears when it is over. */
export type Warning = {
  /** What it is. */
  code: WarningCode,
  /** Since when. */
  since: number,
  /** How bad it is. */
  severity: Severity,
  /** One sentence for people. Never holds a secret. */
  text: string,
  /** What a person can do about it. */
  action?: Action | null,
};

/** What is wrong. The texts are stable. */
export type WarningCode = "sign_in_needed" | "incompatible" | "device_in_use" | "relay_outage" | "protocol_errors" | "calls_lost" | "config_invalid" | "config_restart" | "restart_to_update" | "policy_not_loosened" | "disk_low" | "storage_full" | "ledger_set_aside" | "worker_refused" | "worker_failed" | "relay_failed" | "start_failed" | "seat_failed" | "seat_frozen" | "bot_used_elsewhere" | "channel_parked" | "messages_held" | "channel_stuck" | "channel_set_aside";

/** Numbers of operations. */
export type WorkerCounts = {
  /** Received, not started. */
  waiting: number,
  /** Starting or running. */
  running: number,
  /** Of the running: those whose program waits because its output finds no room. */
  stalled: number,
  /** Ended with an unknown outcome, of the ones shown. */
  unknown: number,
};

/** The worker: its connection, its lease, its operations. */
export type WorkerStatus = {
  /** Its own connection to the relay. */
  state: LinkState,
  /** Since when. */
  since: number,
  /** Why it is not healthy, in plain words. */
  cause: string | null,
  /** When the next try begins. */
  next_try_at: number | null,
  /** The execution lease. */
  lease: LeaseStatus,
  /** How many operations have not ended, and how many ended without an outcome lately. */
  counts: WorkerCounts,
  /** Output written here that the relay has not acknowledged, in bytes. */
  behind_bytes: number,
  /** Results that the relay has not acknowledged. */
  results_waiting: number,
  /** Since when new operations are refused because the disk is full. */
  admission_closed: number | null,
  /** Living operations, oldest first, then the latest ended ones; at most
  * [`crate::limits::WORKER_SHOWN`]. */
  operations: Array<OperationRow>,
};

/** Where file tools work. */
export type WorkspaceConfig = {
  /** The folder; `~/holdfast` by default. Never a home folder or a root. */
  root: string | null,
};
