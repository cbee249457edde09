// How the common clients are given the address, as the README has it.

export interface Way {
  id: string;
  /** Commands to type, if it takes any. */
  lines?: (address: string) => string;
  /** What it takes is an address that the internet reaches. */
  internet?: boolean;
}

export const WAYS: Way[] = [
  { id: 'claude-code', lines: (address) => `claude mcp add --transport http holdfast ${address}` },
  { id: 'codex', lines: (address) => `codex mcp add holdfast --url ${address}\ncodex mcp login holdfast` },
  { id: 'web', internet: true },
  { id: 'inspector', lines: () => 'npx @modelcontextprotocol/inspector' },
  { id: 'other', lines: () => 'Authorization: Bearer TOKEN' },
];

/** Whether only this computer reaches an address. */
export function onlyHere(address: string): boolean {
  const host = URL.canParse(address) ? new URL(address).hostname : '';
  return host === 'localhost' || host === '[::1]' || /^127\./.test(host);
}
