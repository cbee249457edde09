// The official TypeScript SDK 2.x: `auto` speaks 2026-07-28, `legacy` 2025-11-25.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { Memory, run } from './agent.mjs';

const url = new URL(process.argv[2]);
const authProvider = new Memory();

await run(async (redirect) => {
  const open = () => new Client({ name: 'sdk2', version: '1' }, { versionNegotiation: { mode: process.argv[3] } });
  let client = open();
  const transport = new StreamableHTTPClientTransport(url, { authProvider });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth((await redirect()).searchParams);
    client = open();
    await client.connect(new StreamableHTTPClientTransport(url, { authProvider }));
  }
  return { client, version: client.getNegotiatedProtocolVersion() };
}, (client, params, options) => client.callTool(params, options));
