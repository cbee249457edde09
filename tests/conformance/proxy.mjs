// The suite's server scenarios send no credential: this adds one. Host and Origin are translated only where they name this
// proxy itself, so that the scenarios about foreign ones reach the relay as they are.
import http from 'node:http';

const [target, token] = process.argv.slice(2);
const relay = new URL(target);

const server = http.createServer((request, response) => {
  const own = `:${server.address().port}`;
  const translated = (value) => value?.endsWith(own) ? value.slice(0, -own.length) + `:${relay.port}` : value;
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  for (const name of ['host', 'origin']) {
    if (headers[name]) headers[name] = translated(headers[name]);
  }
  const { hostname, port } = relay;
  const forwarded = http.request({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.pipe(response);
  });
  forwarded.on('error', () => response.destroy());
  response.on('close', () => forwarded.destroy());
  request.pipe(forwarded);
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
