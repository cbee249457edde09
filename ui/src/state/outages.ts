// The outages of the last day as marks on a strip, and what they come to.

import type { Outage, StatusSnapshot } from '../api/types.ts';

export const DAY_MS = 24 * 3_600_000;

export interface Mark {
  outage: Outage;
  /** Start and length as shares of the strip, 0 to 1. */
  from: number;
  share: number;
}

export const lengthOf = (outage: Outage, now: number): number =>
  Math.max(0, (outage.ended_at ?? now) - outage.started_at);

/** When the link was lost: the state's own time starts anew when a blip becomes an outage. */
export function lostAt({ outages, relay }: StatusSnapshot): number {
  const last = outages.at(-1);
  return last?.ended_at === null ? last.started_at : relay.since;
}

/** One that began before the strip does is cut at its beginning. */
export function marks(outages: Outage[], now: number): Mark[] {
  const start = now - DAY_MS;
  return outages
    .filter((outage) => (outage.ended_at ?? now) >= start)
    .map((outage) => {
      const from = Math.max(0, outage.started_at - start) / DAY_MS;
      const to = ((outage.ended_at ?? now) - start) / DAY_MS;
      return { outage, from, share: Math.max(0, Math.min(1, to) - from) };
    });
}

export function totals(outages: Outage[], now: number): { count: number; ms: number; saved: number; lost: number } {
  const sum = (of: (outage: Outage) => number) => outages.reduce((all, outage) => all + of(outage), 0);
  return {
    count: outages.length,
    ms: sum((outage) => lengthOf(outage, now)),
    saved: sum((outage) => outage.calls_saved),
    lost: sum((outage) => outage.calls_lost),
  };
}
