// Steps become calls, as `call_rows` of holdfast-core does it, and calls become life bars.

import type { CallRow, CallState, Step, TimelineEntry } from '../api/types.ts';

/** As many steps as the core's ring keeps. */
export const STEPS_KEPT = 500;

/** The ring with new steps at its end. A step it has already is not taken twice. */
export function withSteps(ring: TimelineEntry[], steps: TimelineEntry[]): TimelineEntry[] {
  const last = ring.at(-1)?.seq ?? -1;
  const fresh = steps.filter((step) => step.seq > last);
  return fresh.length === 0 ? ring : [...ring, ...fresh].slice(-STEPS_KEPT);
}

/** Folds steps into calls, newest call first. */
export function callRows(entries: TimelineEntry[]): CallRow[] {
  const rows = new Map<string, CallRow>();
  for (const entry of entries) {
    const { call, tool, at } = entry;
    if (call === null) continue;
    let row = rows.get(call);
    if (row === undefined) {
      row = { call, tool, state: 'running', at, took_ms: null, code: null, client: null, summary: null, steps: [] };
      rows.set(call, row);
    }
    take(row, entry);
  }
  return [...rows.values()].reverse();
}

function take(row: CallRow, entry: TimelineEntry): void {
  row.steps.push([entry.step, entry.at]);
  row.client ??= entry.client ?? null;
  row.summary ??= entry.summary ?? null;
  row.code ??= entry.code ?? null;
  row.state = next(row.state, entry.step);
  if (['finished', 'cancelled', 'lost'].includes(entry.step)) row.took_ms ??= Math.max(0, entry.at - row.at);
}

function next(state: CallState, step: Step): CallState {
  const ended = state !== 'running' && state !== 'detached';
  switch (step) {
    case 'received':
    case 'rebound':
      return ended ? state : 'running';
    case 'detached':
      return ended ? state : 'detached';
    case 'finished':
    case 'sent':
      return state === 'delivered' ? state : 'held';
    case 'delivered':
    case 'cancelled':
    case 'lost':
      return step;
    case 'noticed':
      return state;
  }
}
