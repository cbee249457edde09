// One drill at a time, whatever tab is looked at: its lines as they come.

import type { DrillLine, DrillOrder } from '../../api/types.ts';
import { app } from '../../state/app.svelte.ts';
import type { ApiError } from '../../transport/index.ts';
import { firstSteps } from '../first/steps.svelte.ts';

export type DrillStep = Extract<DrillLine, { event: 'step' }>;
export type DrillVerdict = Extract<DrillLine, { event: 'verdict' }>;

class Drill {
  running = $state(false);
  steps = $state.raw<DrillStep[]>([]);
  verdict = $state.raw<DrillVerdict | null>(null);
  /** It did not begin, or its end is not known. */
  refusal = $state.raw<ApiError | null>(null);
  cutSeconds = $state(5);

  start(order: DrillOrder): void {
    if (this.running) return;
    [this.running, this.steps, this.verdict, this.refusal] = [true, [], null, null];
    app.transport.stream('/api/drill', (item) => this.#take(item as DrillLine), (why) => this.#ended(why), order);
  }

  #take(line: DrillLine): void {
    if (line.event === 'step') {
      this.steps = [...this.steps, line];
      return;
    }
    this.verdict = line;
    if (line.passed) firstSteps.drillPassed();
  }

  #ended(why: ApiError | null): void {
    this.running = false;
    this.refusal = why;
  }
}

export const drill = new Drill();
