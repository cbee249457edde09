// What the window knows: the latest snapshot, the steps of calls, and whether the process answers.

import type { CallRow, Command, StatusSnapshot, TimelineEntry } from '../api/types.ts';
import { ApiError, openTransport, type Transport } from '../transport/index.ts';
import { callRows, withSteps } from './calls.ts';
import { clock } from './clock.svelte.ts';

const RETRY_MS = [250, 500, 1_000, 2_000, 4_000];

/** `refused`: the token or the code of the address is not, or no longer, good. */
export type Answering = 'opening' | 'yes' | 'no' | 'refused';

class App {
  answering = $state<Answering>('opening');
  /** No connection came about, or nothing on it: not the same as nobody there. */
  hangs = $state(false);
  /** When the last snapshot came; what the window shows is this old while nobody answers. */
  heardAt = $state(0);
  snapshot = $state.raw<StatusSnapshot | null>(null);
  /** Why the last command of the first screen was refused, until it is dismissed. */
  refusal = $state.raw<ApiError | null>(null);
  #steps = $state.raw<TimelineEntry[]>([]);
  readonly calls: CallRow[] = $derived(callRows(this.#steps));
  /** What happened to the channel lately, newest first. */
  readonly notices: TimelineEntry[] = $derived(this.#steps.filter((step) => step.notice != null).slice(-10).reverse());

  inBrowser = $state(true);
  #transport: Transport | null = null;

  /** Opens the way to the process, again and again until it is open or refused, then follows what it says. */
  async open(tries = 0): Promise<void> {
    try {
      this.#transport = await openTransport();
    } catch (error) {
      return this.#failed(error as ApiError, tries, () => void this.open(tries + 1));
    }
    this.inBrowser = this.#transport.kind === 'http';
    this.#follow(
      () => '/api/status/stream',
      (item) => this.#take(item as StatusSnapshot),
    );
    this.#follow(
      () => `/api/timeline/stream?from=${(this.#steps.at(-1)?.seq ?? -1) + 1}`,
      (item) => {
        this.#steps = withSteps(this.#steps, [item as TimelineEntry]);
      },
      false,
    );
  }

  get transport(): Transport {
    if (this.#transport === null) throw new ApiError('unavailable', 'Holdfast does not answer yet', 0);
    return this.#transport;
  }

  async command<T = unknown>(command: Command): Promise<T> {
    return this.transport.request<T>('POST', '/api/command', command);
  }

  /** For buttons with no place of their own for an answer: a refusal is shown at the top. */
  async act(command: Command): Promise<void> {
    this.refusal = null;
    try {
      await this.command(command);
    } catch (error) {
      this.refusal = error instanceof ApiError ? error : new ApiError('internal_error', String(error), 0);
    }
  }

  /** Every item is whole, so after a gap the next one is as good as any. */
  #take(snapshot: StatusSnapshot): void {
    this.answering = 'yes';
    this.hangs = false;
    clock.touch();
    this.heardAt = clock.now;
    this.snapshot = snapshot;
  }

  /** `speaks`: whether its silence is that of the process, and not just of this stream. */
  #follow(path: () => string, take: (item: unknown) => void, speaks = true): void {
    let tries = 0;
    const open = () => {
      this.transport.stream(
        path(),
        (item) => {
          tries = 0;
          take(item);
        },
        (why) => this.#failed(why, tries++, open, speaks),
      );
    };
    open();
  }

  /** The first failure may be the end of a stream that the next try carries on; it is not told. One that took long is. */
  #failed(why: ApiError | null, tries: number, again: () => void, speaks = true): void {
    if (why?.status === 401) this.answering = 'refused';
    if (this.answering === 'refused') return;
    if (speaks && why !== null) {
      this.hangs = why.code === 'no_answer';
      if (this.hangs || tries > 0) this.answering = 'no';
    }
    setTimeout(again, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
  }
}

export const app = new App();
