// A Holdfast that says what a test wants it to say: for states that a real one reaches rarely or slowly. It serves the
// window's files under the same policy and speaks the endpoints that the first screen uses.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname } from 'node:path';

import { eventually } from './moments.js';

const DIST = new URL('../../../ui/dist/', import.meta.url);
const KINDS = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const POLICY =
  "default-src 'self'; connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/** Somebody was let in, so the first steps are over. */
const TOKEN = { id: 'pat_1', name: 'script', account: 'ann', device: 'dev_1', role: null, created: 1_700_000_000, expires: 1_900_000_000, last_used: null };

export class Scripted {
  /** Commands and other requests in their order: `{method, path, body}`; not those that only list, which panels repeat. */
  asked = [];
  /** By command or by path: what answers it. Throw `{status, code, message}` for a refusal. */
  answers = { client_list: [], device_list: [], account_list: [], token_list: [TOKEN] };
  /** Further event streams: by path, what they say when they are opened. */
  streams = {};
  /** What a new page waits for before it gets its token. */
  sessions = async () => {};
  #turns = new EventEmitter();
  #steps = [];
  #streams = new Map();
  #token = 'token-1';
  #codes = new Set();

  static async start(snapshot, steps = []) {
    const scripted = new Scripted();
    scripted.snapshot = snapshot;
    scripted.#steps = steps;
    scripted.server = createServer((request, response) => {
      scripted.#handle(request, response).catch((e) => {
        const { status = 409, code = 'failed', message = String(e) } = e;
        scripted.#json(response, status, { code, message });
      });
    });
    await scripted.reserve();
    return scripted;
  }

  listen(port) {
    return new Promise((done, fail) => {
      this.server.once('error', fail);
      this.server.listen(port, '127.0.0.1', () => {
        this.server.off('error', fail);
        this.port = port;
        done();
      });
    });
  }

  /** Listens where the system puts nobody else while this one is silent. */
  async reserve() {
    for (;;) {
      const port = 13_000 + Math.floor(Math.random() * 7_000);
      try {
        return await this.listen(port);
      } catch (error) {
        if (error.code !== 'EADDRINUSE') throw error;
      }
    }
  }

  /** A new address that opens the window once. */
  url() {
    const code = `code${this.#codes.size}`;
    this.#codes.add(code);
    return `http://127.0.0.1:${this.port}/#${code}`;
  }

  /** Another process: its tokens and codes are others. */
  forget() {
    this.#token = `${this.#token}1`;
    this.#codes.clear();
  }

  say(change) {
    this.snapshot = { ...this.snapshot, ...change, seq: this.snapshot.seq + 1 };
    this.send('/api/status/stream', this.snapshot);
  }

  step(entry) {
    this.#steps.push(entry);
    this.send('/api/timeline/stream', entry);
  }

  /** Ends every connection and listens no more. */
  silence() {
    return new Promise((done) => {
      this.server.close(done);
      this.server.closeAllConnections();
    });
  }

  /** Until so many streams are read; sooner than a stream that says nothing is given up. */
  async followers(count) {
    const signal = AbortSignal.timeout(30_000);
    const followed = () => [...this.#streams.values()].reduce((sum, { size }) => sum + size, 0);
    while (followed() !== count) await once(this.#turns, 'turn', { signal });
  }

  /** Until this was asked, and nothing after it. */
  lastAsked(body) {
    return eventually(() => assert.deepEqual(this.asked.at(-1)?.body, body));
  }

  /** To everybody who reads a stream. */
  send(path, item) {
    for (const response of this.#streams.get(path) ?? []) response.write(`data: ${JSON.stringify(item)}\n\n`);
  }

  #json(response, status, body) {
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(JSON.stringify(body));
  }

  async #handle(request, response) {
    const { pathname, searchParams } = new URL(request.url, 'http://127.0.0.1');
    if (!pathname.startsWith('/api/')) return this.#file(pathname, response);
    let text = '';
    for await (const part of request) text += part;
    const body = text === '' ? undefined : JSON.parse(text);
    if (pathname === '/api/session') {
      await this.sessions();
      if (!this.#codes.delete(body.code)) throw { status: 401, code: 'authentication_failed', message: 'the code is worth nothing' };
      return this.#json(response, 200, { token: this.#token });
    }
    if (request.headers.authorization !== `Bearer ${this.#token}`) {
      throw { status: 401, code: 'authentication_failed', message: 'a token is needed' };
    }
    if (pathname === '/api/status/stream') return this.#stream(pathname, response, [this.snapshot]);
    if (pathname === '/api/timeline/stream') {
      return this.#stream(pathname, response, this.#steps.filter(({ seq }) => seq >= Number(searchParams.get('from'))));
    }
    if (pathname in this.streams) return this.#stream(pathname, response, this.streams[pathname]);
    if (request.method === 'POST' && !body?.command?.endsWith('_list')) this.asked.push({ method: request.method, path: pathname, body });
    const answer = this.answers[body?.command ?? pathname];
    if (answer === undefined && request.method === 'GET') throw { status: 404, code: 'not_found', message: 'there is nothing' };
    this.#json(response, 200, typeof answer === 'function' ? await answer(body) : (answer ?? {}));
  }

  #stream(path, response, known) {
    const open = this.#streams.get(path) ?? new Set();
    this.#streams.set(path, open.add(response));
    this.#turns.emit('turn');
    response.on('close', () => {
      open.delete(response);
      this.#turns.emit('turn');
    });
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    for (const item of known) response.write(`data: ${JSON.stringify(item)}\n\n`);
  }

  async #file(pathname, response) {
    const name = pathname === '/' ? 'index.html' : pathname.slice(1);
    const content = await readFile(new URL(name, DIST)).catch(() => null);
    if (content === null) return this.#json(response, 404, { code: 'not_found', message: 'there is no such file' });
    response.writeHead(200, { 'content-type': KINDS[extname(name)] ?? 'text/plain', 'content-security-policy': POLICY });
    response.end(content);
  }
}
