// The smallest MCP client: one tool call per request, answered as JSON or as an event stream.

export class Client {
  #id = 0;

  constructor(mcp, token) {
    this.mcp = mcp;
    this.token = token;
  }

  async call(name, args) {
    const id = (this.#id += 1);
    const response = await fetch(this.mcp, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': name,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, _meta: META } }),
    });
    const text = await response.text();
    const lines = text.split('\n').map((line) => line.replace(/^data:\s*/, '')).filter((line) => line.startsWith('{'));
    const answer = lines.map((line) => JSON.parse(line)).find((message) => message.id === id);
    if (answer === undefined) throw new Error(`no answer to ${name}: ${response.status} ${text}`);
    return answer.result ?? answer;
  }
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'holdfast-ui-tests', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
