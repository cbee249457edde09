// A list that a command answers, kept fresh while somebody looks at it.

import type { Command } from '../api/types.ts';
import { app } from '../state/app.svelte.ts';
import type { ApiError } from '../transport/index.ts';
import { refusalOf } from './told.ts';

/** Others (the command line, a client that signs in) change the same lists, and nothing tells. */
const FRESH_MS = 4_000;

export class Listing<T> {
  /** Null until the first answer. */
  rows = $state.raw<T[] | null>(null);
  refusal = $state.raw<ApiError | null>(null);
  readonly #command: Command;
  #asked = 0;

  constructor(command: Command) {
    this.#command = command;
  }

  load = async (): Promise<void> => {
    this.#asked += 1;
    const asked = this.#asked;
    try {
      const rows = await app.command<T[]>(this.#command);
      if (asked === this.#asked) [this.rows, this.refusal] = [rows, null];
    } catch (error) {
      if (asked === this.#asked) this.refusal = refusalOf(error);
    }
  };

  /** For an `$effect`: asks now and again until the returned function is called; a hidden page asks nothing. */
  follow = (): (() => void) => {
    const ask = () => {
      if (!document.hidden) void this.load();
    };
    ask();
    const timer = setInterval(ask, FRESH_MS);
    document.addEventListener('visibilitychange', ask);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', ask);
    };
  };
}
