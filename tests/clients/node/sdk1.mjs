// The official TypeScript SDK 1.x.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Memory, run } from './agent.mjs';

const url = new URL(process.argv[2]);
const authProvider = new Memory();

await run(async (redirect) => {
  const client = new Client({ name: 'sdk1', version: '1' });
  const transport = new StreamableHTTPClientTransport(url, { authProvider });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth((await redirect()).searchParams.get('code'));
    await client.connect(new StreamableHTTPClientTransport(url, { authProvider }));
  }
  return { client, version: '2025-11-25' };
}, (client, params, options) => client.callTool(params, undefined, options));
