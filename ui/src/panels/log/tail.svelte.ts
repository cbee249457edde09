// The end of the log, as it grows.

import { app } from '../../state/app.svelte.ts';
import type { ApiError } from '../../transport/index.ts';
import { refusalOf } from '../told.ts';
import { lineOf, type Line } from './lines.ts';

const FIRST = 500;
const KEPT = 1_000;
const AGAIN_MS = 1_000;

export class Tail {
  /** Oldest first; null until the first answer. */
  lines = $state.raw<Line[] | null>(null);
  refusal = $state.raw<ApiError | null>(null);
  #next = 0;
  #stop = (): void => {};
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: Line[] = [];

  /** For an `$effect`: follows until the returned function is called. */
  follow = (): (() => void) => {
    void this.#begin();
    return () => {
      clearTimeout(this.#timer);
      this.#stop();
    };
  };

  async #begin(): Promise<void> {
    try {
      const known = await app.transport.request<unknown[]>('GET', `/api/logs?lines=${FIRST}`);
      this.lines = known.map((line) => this.#line(line));
      this.refusal = null;
    } catch (error) {
      this.refusal = refusalOf(error);
      this.#later();
      return;
    }
    this.#stop = app.transport.stream(
      '/api/logs/stream',
      (item) => this.#take(this.#line(item)),
      () => this.#later(),
    );
  }

  #line(came: unknown): Line {
    this.#next += 1;
    return lineOf(came, this.#next);
  }

  /** A burst of lines is drawn once. */
  #take(line: Line): void {
    if (this.#waiting.push(line) > 1) return;
    requestAnimationFrame(() => {
      this.lines = [...(this.lines ?? []), ...this.#waiting].slice(-KEPT);
      this.#waiting = [];
    });
  }

  #later(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#begin(), AGAIN_MS);
  }
}
