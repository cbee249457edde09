// A temporary home with the real Holdfast in it.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { Client } from './mcp.js';

export const BINARY = process.env.HOLDFAST_BIN ?? new URL('../../../target/debug/holdfast', import.meta.url).pathname;

export class Home {
  #log = '';
  #process;

  /** `holdfast serve` with the relay inside, or with another relay's address. */
  static async serve({ relay, config } = {}) {
    const home = await Home.make();
    if (config) await writeFile(home.config, config);
    await home.start(relay);
    return home;
  }

  /** Nothing runs in it yet. */
  static async make() {
    const home = new Home();
    home.root = await mkdtemp(join(tmpdir(), 'holdfast-ui-'));
    for (const folder of ['data', 'config', 'workspace', 'run']) await mkdir(join(home.root, folder));
    return home;
  }

  async start(relay) {
    const where = relay ? ['--relay', relay] : ['--listen', '127.0.0.1:0'];
    const args = ['serve', '--json', ...where, '--workspace', this.workspace];
    this.#process = spawn(BINARY, args, { env: this.#env, cwd: this.root, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#process.stderr.on('data', (text) => (this.#log += text));
    const ended = once(this.#process, 'exit').then(([code]) => {
      throw new Error(`holdfast serve ended with ${code}: ${this.#log}`);
    });
    ended.catch(() => {});
    const ready = (async () => {
      for await (const line of createInterface(this.#process.stdout)) {
        const said = JSON.parse(line);
        if (said.event === 'ready') return said;
      }
      return ended;
    })();
    this.ready = await Promise.race([ready, ended]);
  }

  get workspace() {
    return join(this.root, 'workspace');
  }

  get config() {
    return join(this.root, 'config', 'config.toml');
  }

  get #env() {
    const at = (name) => join(this.root, name);
    return {
      PATH: process.env.PATH, HOME: this.root, LANG: 'C.UTF-8', HOLDFAST_SECRETS: 'file', RUST_BACKTRACE: '1',
      HOLDFAST_DATA_DIR: at('data'), HOLDFAST_CONFIG_DIR: at('config'), XDG_RUNTIME_DIR: at('run'),
      XDG_CONFIG_HOME: at('xdg-config'), XDG_DATA_HOME: at('xdg-data'), XDG_STATE_HOME: at('xdg-state'),
    };
  }

  /** A command that must succeed; its stdout. */
  async run(...args) {
    const { stdout } = await promisify(execFile)(BINARY, args, { env: this.#env, cwd: this.root });
    return stdout.trim();
  }

  /** An address that opens the window once. */
  url() {
    return this.run('open', '--print');
  }

  /** An MCP client with a token of its own. */
  async client(name = 'script') {
    return new Client(this.ready.mcp, await this.run('token', 'create', '--name', name));
  }

  /** One request to the local API with the token that stands in `api.json`. */
  async api(method, path, body) {
    const { address, token } = JSON.parse(await readFile(join(this.root, 'data', 'api.json'), 'utf8'));
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(`http://${address}${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  async stop(signal = 'SIGTERM') {
    if (this.#process === undefined || this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill(signal);
    await ended;
  }

  async remove() {
    await this.stop('SIGKILL');
    // What it started may still be writing.
    await rm(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}
