// Durable operations in the window, in states that a real worker reaches rarely.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from './support/moments.js';
import { base, cut, worker, workerAway } from './support/states.js';
import { suite } from './support/suite.js';
import { axe, overflow } from './support/window.js';

const { holdfast, scripted } = suite();
const tab = (page) => page.getByRole('link', { name: 'Operations', exact: true });
const panel = (page, name) => page.getByRole('region', { name, exact: true });
const row = (page, text) => page.getByRole('listitem').filter({ hasText: text });
const away = (now) => ({ ...cut(now), worker: workerAway(now) });

test('a worker that is away says how far the relay is behind, when the lease ends, and what nobody knows the end of', async () => {
  const now = Date.now();
  const { page } = await scripted(away(now), [], { at: now });
  await page
    .getByText('Operations: 2 running, 1 waiting, 1 paused: no room for its output, 3.2 MB not yet at the relay, 1 result not yet at the relay, 1 with an unknown outcome')
    .waitFor();
  await tab(page).click();
  for (const said of [/No connection · since \d\d:\d\d/, /Lease\s+Not renewed, 1 min 40 s left/, /Output\s+3\.2 MB not yet at the relay/]) {
    await eventually(async () => assert.match(await panel(page, 'Worker').innerText(), said));
  }
  const first = panel(page, 'Operations').getByRole('listitem').first();
  const told = /deploy --now[\s\S]*outcome unknown[\s\S]*the machine restarted while it ran/;
  await eventually(async () => assert.match(await first.innerText(), told));
  await row(page, 'cargo test').getByText(/^Paused since /).waitFor();
  await row(page, 'cargo test').getByText(/ends if the relay stays away/).waitFor();
  await row(page, 'git fetch').getByText(/exit code 0/).waitFor();
});

test('a living operation is cancelled after a question, an unknown one dismissed at once', async () => {
  const now = Date.now();
  const { holdfast, page } = await scripted(away(now), []);
  await tab(page).click();
  await row(page, 'make bench').getByRole('button', { name: 'Cancel make bench' }).click();
  const dialog = page.getByRole('dialog', { name: 'Cancel this operation?' });
  await dialog.getByText('If it has not started, it never will.', { exact: false }).waitFor();
  await dialog.getByRole('button', { name: 'Cancel', exact: true }).last().click();
  await dialog.waitFor({ state: 'detached' });
  await holdfast.lastAsked({ command: 'operation_cancel', operation: 'op_b' });
  await row(page, 'deploy --now').getByRole('button', { name: 'Dismiss deploy --now' }).click();
  await holdfast.lastAsked({ command: 'operation_dismiss', operation: 'op_d' });
  assert.equal(await row(page, 'git fetch').getByRole('button').count(), 0);
});

test('a refused dismissal is told at its operation', async () => {
  const now = Date.now();
  const { holdfast, page } = await scripted(away(now), []);
  holdfast.answers.operation_dismiss = () => {
    throw { status: 404, code: 'not_found', message: 'no such operation' };
  };
  await tab(page).click();
  await row(page, 'deploy --now').getByRole('button', { name: 'Dismiss deploy --now' }).click();
  await row(page, 'deploy --now').getByText('no such operation').waitFor();
});

test('a full disk stands above the list, and an idle worker says how to begin', async () => {
  const now = Date.now();
  const idle = worker(now, { operations: [], counts: { waiting: 0, running: 0, stalled: 0, unknown: 0 }, admission_closed: now });
  const { holdfast, page } = await scripted(base(now, { worker: idle }), []);
  await page.getByText('Operations: new ones are refused, the disk is full').waitFor();
  await tab(page).click();
  await page.getByText(/^The disk is full since /).waitFor();
  await page.getByText('holdfast op run -- cargo test').waitFor();
  holdfast.say({ worker: null });
  await page.getByText('No worker runs in this process.', { exact: false }).waitFor();
});

test('the panel has no finding of axe in light and in dark, no missing text, and fits into 420 pixels', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const now = Date.now();
    const { page } = await scripted(away(now), [], { colorScheme, viewport: { width: 420, height: 900 } });
    await tab(page).click();
    await row(page, 'cargo test').waitFor();
    assert.deepEqual(await axe(page), [], colorScheme);
    assert.equal(await overflow(page), 0);
    assert.doesNotMatch(await page.locator('body').innerText(), /\bui-[a-z-]+|\{|undefined|NaN/);
    assert.deepEqual(page.complaints, []);
  }
});

test('a real operation is seen while it runs, cancelled from the window, and listed as cancelled', async () => {
  const { home, page } = await holdfast();
  const id = (await home.run('op', 'run', '--detach', '--cwd', '.', '--', 'sh', '-c', 'echo here; sleep 600')).trim();
  await tab(page).click();
  const running = row(page, 'sleep 600');
  await running.getByText('running', { exact: true }).waitFor();
  await running.getByText(id, { exact: true }).waitFor();
  await running.getByRole('button', { name: /^Cancel / }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).last().click();
  await row(page, id).getByText('cancelled', { exact: true }).waitFor();
  // The relay hears of it from this machine.
  await eventually(async () => assert.match(await home.run('op', 'show', id), /cancelled/));
});
