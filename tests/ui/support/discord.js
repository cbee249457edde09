// The Discord of the Rust tests, as a process: it is asked by lines and answers by lines.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

import { BINARY } from './home.js';

export class Discord {
  #process;
  #lines;

  static async start() {
    const discord = new Discord();
    discord.#process = spawn(join(dirname(BINARY), 'examples', 'discord'), { stdio: ['pipe', 'pipe', 'inherit'] });
    discord.#lines = createInterface(discord.#process.stdout)[Symbol.asyncIterator]();
    Object.assign(discord, await discord.#heard());
    return discord;
  }

  async #heard() {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the Discord of the tests ended');
    return JSON.parse(value);
  }

  async ask(what) {
    this.#process.stdin.write(`${JSON.stringify(what)}\n`);
    return this.#heard();
  }

  /** Somebody writes in the channel. */
  write(text) {
    return this.ask({ do: 'write', channel: this.channel, person: this.person, text });
  }

  /** Waits until the bot posted something with this in it: `{message, text}`. */
  posted(text) {
    return this.ask({ do: 'posted', channel: this.channel, text });
  }

  async stop() {
    const ended = once(this.#process, 'exit');
    this.#process.stdin.end();
    await ended;
  }
}
