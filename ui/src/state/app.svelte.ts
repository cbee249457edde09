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
  /** When the last snapshot came; what the window shows is this old while nobody answers. */
  heardAt = $state(0);
  snapshot = $state.raw<StatusSnapshot | null>(null);
  /** Why the last command of the first screen was refused, until it is dismissed. */
  refusal = $state.raw<ApiError | null>(null);
  #steps = $state.raw<TimelineEntry[]>([]);
  readonly calls: CallRow[] = $derived(callRows(this.#steps));

  #transport: Transport | null = null;
  inBrowser = $state(true);
  #process = 0;
  #tries = 0;

  async open(): Promise<void> {
    try {
      this.#transport = await openTransport();
      this.inBrowser = this.#transport.kind === 'http';
    } catch (error) {
      return this.#failed(error as ApiError, () => void this.open());
    }
    this.#followSnapshots();
    this.#followSteps();
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

  #followSnapshots(): void {
    this.transport.stream(
      '/api/status/stream',
      (item) => this.#take(item as StatusSnapshot),
      (why) => this.#failed(why, () => this.#followSnapshots()),
    );
  }

  #take(snapshot: StatusSnapshot): void {
    this.answering = 'yes';
    this.#tries = 0;
    clock.touch();
    this.heardAt = clock.now;
    // Another process numbers its steps from the start.
    if (snapshot.app.started_at !== this.#process) this.#steps = [];
    this.#process = snapshot.app.started_at;
    this.snapshot = snapshot;
  }

  #followSteps(): void {
    const from = (this.#steps.at(-1)?.seq ?? -1) + 1;
    this.transport.stream(
      `/api/timeline/stream?from=${from}`,
      (item) => {
        this.#steps = withSteps(this.#steps, [item as TimelineEntry]);
      },
      () => this.#later(() => this.#followSteps()),
    );
  }

  #failed(why: ApiError | null, again: () => void): void {
    if (why?.status === 401 || why?.status === 403) {
      this.answering = 'refused';
      return;
    }
    if (this.answering !== 'opening' || this.#tries > 1) this.answering = 'no';
    this.#later(again);
  }

  #later(again: () => void): void {
    if (this.answering === 'refused') return;
    const wait = RETRY_MS[Math.min(this.#tries, RETRY_MS.length - 1)] ?? 0;
    this.#tries += 1;
    setTimeout(again, wait);
  }
}

export const app = new App();
