// The end of the log, as it grows.

import { app } from '../../state/app.svelte.ts';
import type { ApiError } from '../../transport/index.ts';
import { lineOf, type Level, type Line } from './lines.ts';

const FIRST = 500;
const KEPT = 1_000;
const AGAIN_MS = 1_000;

export class Tail {
  /** Oldest first. */
  lines = $state.raw<Line[]>([]);
  refusal = $state.raw<ApiError | null>(null);
  #next = 0;
  #stop = (): void => {};
  #timer: ReturnType<typeof setTimeout> | undefined;
  #came: Line[] = [];
  #fresh = true;

  /** For an `$effect`: follows lines of this level and more important ones until the returned function is called. */
  follow(level: Level): () => void {
    this.lines = [];
    this.#begin(level);
    return () => {
      clearTimeout(this.#timer);
      this.#stop();
      this.#came = [];
    };
  }

  /** The lines that are known come again with each stream: they take the place of what is shown. */
  #begin(level: Level): void {
    this.#fresh = true;
    this.#stop = app.transport.stream(
      `/api/logs/stream?lines=${FIRST}&level=${level}`,
      (item) => this.#take(item),
      (why) => {
        this.refusal = why;
        this.#timer = setTimeout(() => this.#begin(level), AGAIN_MS);
      },
    );
  }

  /** A burst of lines is drawn once. A hidden page draws nothing, so what waits to be drawn is cut here. */
  #take(item: unknown): void {
    this.refusal = null;
    this.#next += 1;
    const waits = this.#came.push(lineOf(item, this.#next));
    if (waits === 1) requestAnimationFrame(() => this.#draw());
    if (waits > KEPT) this.#came.shift();
  }

  #draw(): void {
    if (this.#came.length === 0) return;
    this.lines = [...(this.#fresh ? [] : this.lines), ...this.#came].slice(-KEPT);
    [this.#came, this.#fresh] = [[], false];
  }
}
