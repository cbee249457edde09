// The drill: the promise, proven from the window.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { eventually, glimpse } from './support/moments.js';
import { suite } from './support/suite.js';

const { holdfast } = suite();
const UNTIL_RELEASED = { argv: ['sh', '-c', 'while [ ! -e release ]; do sleep 0.05; done'] };
const panel = (page, name) => page.getByRole('region', { name, exact: true });
const verdict = (page) => page.getByRole('alert').filter({ hasText: 'Delivered once.' });

test('a drill shows each step with its time as it happens, and that the call was delivered once', async () => {
  const { page } = await holdfast();
  await page.getByRole('button', { name: 'Run a drill' }).click();
  const cut = page.getByLabel('Cut the link for');
  await cut.focus();
  await page.keyboard.press('Home');
  await eventually(async () => assert.equal(await cut.getAttribute('aria-valuetext'), '1 s'));
  const waited = await glimpse(page, 'Waiting…');
  await page.getByRole('button', { name: 'Start the drill' }).click();
  const steps = panel(page, 'What happened');
  await steps.getByText('This machine received the call and runs it').waitFor();
  await steps.getByText('The link is cut for 1 s').waitFor();
  await waited();
  await verdict(page).waitFor();
  await eventually(async () => {
    const times = await steps.locator('time').allInnerTexts();
    assert.equal(times[0], '0 s');
    assert.ok(times.length >= 6 && times.slice(1).every((time) => /^\+ [\d.]+ m?s$/.test(time)), `${times}`);
  });
  await page.getByRole('button', { name: 'Run again' }).waitFor();
});

test('a drill while calls run is asked about first', async () => {
  const { home, page } = await holdfast();
  const client = await home.client();
  const running = client.call('run_process', UNTIL_RELEASED);
  await page.getByRole('button', { name: 'Run a drill' }).click();
  await page.getByLabel('Cut the link for').fill('1');
  await page.getByRole('heading', { level: 1, name: '1 call' }).waitFor();
  await page.getByRole('button', { name: 'Start the drill' }).click();
  const question = page.getByRole('dialog', { name: 'Cut the link while 1 call is running?' });
  await question.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(await panel(page, 'What happened').count(), 0);
  await page.getByRole('button', { name: 'Start the drill' }).click();
  await question.getByRole('button', { name: 'Cut anyway' }).click();
  await verdict(page).waitFor();
  await writeFile(join(home.workspace, 'release'), '');
  assert.equal((await running).isError ?? false, false);
});

test('without a link there is nothing to cut, and the window says so', async () => {
  const { home, page } = await holdfast();
  await home.run('stop', 'link');
  await page.getByRole('button', { name: 'Run a drill' }).click();
  await page.getByText('The link is not up now, so there is nothing to cut.').waitFor();
  await eventually(async () => assert.ok(await page.getByRole('button', { name: 'Start the drill' }).isDisabled()));
});
