// What the window makes of steps and outages, without a browser. The first cases are those of the core's `call_rows`.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fromWindow } from './support/typescript.js';

const { callRows, withSteps, STEPS_KEPT } = await fromWindow('state/calls.ts');
const { segments, share, shown } = await fromWindow('state/life.ts');
const { DAY_MS, lostAt, marks, totals } = await fromWindow('state/outages.ts');

const step = (call, at, step, more = {}) => ({ seq: at, at, call, tool: 'run_process', step, ...more });
const ACROSS_A_CUT = [
  step('call_aaaaaaaa', 10, 'received'),
  step('call_bbbbbbbb', 11, 'received'),
  step('call_aaaaaaaa', 20, 'detached'),
  step('call_aaaaaaaa', 30, 'finished'),
  step('call_aaaaaaaa', 40, 'rebound'),
  step('call_aaaaaaaa', 41, 'sent'),
  step('call_aaaaaaaa', 42, 'delivered'),
];

test('a call across a cut is one row with all its steps', () => {
  const rows = callRows(ACROSS_A_CUT);
  assert.equal(rows.length, 2);
  assert.equal(rows[0].call, 'call_bbbbbbbb');
  assert.deepEqual([rows[1].state, rows[1].took_ms, rows[1].steps.length], ['delivered', 20, 6]);
  assert.equal(callRows(ACROSS_A_CUT.slice(0, 3))[1].state, 'detached');
  assert.equal(callRows(ACROSS_A_CUT.slice(0, 5))[1].state, 'held');
});

test('the ring forgets the oldest step, and a step that is there is not taken twice', () => {
  const all = Array.from({ length: STEPS_KEPT + 1 }, (_, at) => step('call_aaaaaaaa', at, 'received'));
  const ring = withSteps(withSteps([], all.slice(0, 3)), all);
  assert.equal(ring.length, STEPS_KEPT);
  assert.equal(ring[0].seq, 1);
  assert.equal(withSteps(ring, all), ring);
});

test('a life bar shows what was running, detached and held, up to the delivery', () => {
  const [, across] = callRows(ACROSS_A_CUT);
  assert.deepEqual(segments(across, 99), [
    { phase: 'running', ms: 10 }, { phase: 'detached', ms: 10 }, { phase: 'held', ms: 12 },
  ]);
  const [running] = callRows(ACROSS_A_CUT);
  assert.deepEqual(segments(running, 111), [{ phase: 'running', ms: 100 }]);
});

test('a call that was delivered with an error counts as failed', () => {
  const [row] = callRows([step('a', 1, 'received'), step('a', 2, 'finished', { code: 'timeout' }), step('a', 3, 'delivered')]);
  assert.deepEqual([shown(row), row.code, row.state], ['failed', 'timeout', 'delivered']);
});

test('a bar is as long as the square root of its share of the longest', () => {
  assert.deepEqual([share(0, 100), share(25, 100), share(100, 100), share(900, 100)], [0, 0.5, 1, 1]);
});

test('outages are marks on the day, cut at its beginning, and come to totals', () => {
  const now = 2 * DAY_MS;
  const outages = [
    { started_at: DAY_MS - 1_000, ended_at: DAY_MS + DAY_MS / 4, cause: null, calls_saved: 2, calls_lost: 1 },
    { started_at: now - 1_000, ended_at: null, cause: null, calls_saved: 0, calls_lost: 0 },
  ];
  const [first, last] = marks(outages, now);
  assert.deepEqual([first.from, first.share], [0, 0.25]);
  assert.ok(Math.abs(last.from + last.share - 1) < 1e-9 && last.share > 0);
  assert.deepEqual(totals(outages, now), { count: 2, ms: DAY_MS / 4 + 2_000, saved: 2, lost: 1 });
  assert.equal(lostAt({ outages, relay: { since: now } }), now - 1_000);
  assert.equal(lostAt({ outages: outages.slice(0, 1), relay: { since: now } }), now);
});
