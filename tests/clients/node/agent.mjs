// What all agents share: commands as JSON lines on stdin, answers as JSON lines on stdout.
//
//   {"do":"connect"}                          → {"authorize":URL}, waits for {"redirect":URL}, → {"connected":VERSION}
//   {"do":"list"}                             → {"tools":[NAME…]}
//   {"do":"call","id":N,"name":…,"arguments":…} → {"id":N,"result":…} or {"id":N,"error":TEXT} when it ends
//   {"do":"cancel","id":N}
import { createInterface } from 'node:readline';

export const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

/** An OAuth provider that keeps everything in memory and lets the other side be the browser. */
export class Memory {
  redirectUrl = 'http://127.0.0.1:7/callback';
  clientMetadata = {
    client_name: 'an official SDK',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  clientInformation = () => this.client;
  saveClientInformation = (client) => { this.client = client; };
  tokens = () => this.kept;
  saveTokens = (tokens) => { this.kept = tokens; };
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => { this.verifier = verifier; };
  redirectToAuthorization = (url) => say({ authorize: url.toString() });
}

/**
 * Runs commands. `connect(redirect)` connects, where `redirect()` waits for the URL the browser was sent to, and
 * returns a client with the SDK's own `listTools` and `callTool`, and the version it speaks.
 */
export async function run(connect, callTool) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    return done ? undefined : JSON.parse(value);
  };
  const redirect = async () => new URL((await next()).redirect);
  const calls = new Map();
  let client;
  for (let command = await next(); command; command = await next()) {
    const { id } = command;
    switch (command.do) {
      case 'connect': {
        const connected = await connect(redirect);
        client = connected.client;
        say({ connected: connected.version });
        break;
      }
      case 'list':
        say({ tools: (await client.listTools()).tools.map((tool) => tool.name) });
        break;
      case 'call': {
        const abort = new AbortController();
        calls.set(id, abort);
        const options = { signal: abort.signal, timeout: 120_000, maxTotalTimeout: 120_000 };
        callTool(client, { name: command.name, arguments: command.arguments }, options)
          .then((result) => say({ id, result }), (error) => say({ id, error: String(error) }));
        break;
      }
      case 'cancel':
        calls.get(id).abort('the test says so');
        break;
    }
  }
  await client?.close();
  process.exit(0);
}
