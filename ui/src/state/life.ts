// A call's life bar: what it did, for how long.

import type { CallRow } from '../api/types.ts';

export type Phase = 'running' | 'detached' | 'held';
/** A filter's word for each state, and for the calls that ended with an error. */
export type Shown = CallRow['state'] | 'failed';

export interface Segment {
  phase: Phase;
  ms: number;
}

/** The phases of a call in their order, up to its delivery, its end without one, or now. */
export function segments(row: CallRow, now: number): Segment[] {
  const out: Segment[] = [];
  let phase: Phase | null = null;
  let since = row.at;
  let finished = false;
  const turn = (next: Phase | null, at: number) => {
    if (phase === next) return;
    if (phase !== null) out.push({ phase, ms: Math.max(0, at - since) });
    phase = next;
    since = at;
  };
  for (const [step, at] of row.steps) {
    if (step === 'delivered' || step === 'cancelled' || step === 'lost') {
      turn(null, at);
      return out;
    }
    finished ||= step === 'finished' || step === 'sent';
    if (finished) turn('held', at);
    else turn(step === 'detached' ? 'detached' : 'running', at);
  }
  turn(null, now);
  return out;
}

export const isOver = (row: CallRow): boolean => ['delivered', 'cancelled', 'lost'].includes(row.state);

export const hasFailed = (row: CallRow): boolean => row.code !== null;

/** What the list says about a call: the outcome comes before the way of delivery. */
export function shown(row: CallRow): Shown {
  return row.state === 'delivered' && hasFailed(row) ? 'failed' : row.state;
}

/** Milliseconds from its first step to its end, or until now. */
export function lasted(row: CallRow, now: number): number {
  return row.took_ms ?? Math.max(0, now - row.at);
}

/** Whether every word of the text stands somewhere in the row. */
export function matches(row: CallRow, text: string): boolean {
  const all = [row.tool, row.client, row.summary, row.code, row.call].join(' ').toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

/**
 * How long a bar is, as a share of the column: the square root of the time, so that 10 ms, 1 s and 1 min can be told apart
 * in one list. `longest` is the longest of the list.
 */
export function share(ms: number, longest: number): number {
  return longest <= 0 ? 0 : Math.sqrt(Math.min(1, ms / longest));
}
