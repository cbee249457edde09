// The same window inside the desktop application: over the shell's bridge instead of HTTP, with frozen prototypes.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from './support/moments.js';
import { calm, timeline } from './support/states.js';
import { suite } from './support/suite.js';

const { bridged } = suite();

test('over the bridge the window shows the same, asks by commands of the shell, and takes up a stream that ended', async () => {
  const now = Date.now();
  const { page, said, push } = await bridged(calm(now), timeline(now));
  await page.getByRole('heading', { name: 'Connected to relay.example — 1 call is running' }).waitFor();
  await page.getByRole('listitem').filter({ hasText: 'git push' }).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  const asked = async () => (await said('request')).filter(({ body }) => !body?.command.endsWith('_list'));
  await eventually(async () => assert.deepEqual(await asked(), [{ method: 'POST', path: '/api/command', body: { command: 'stop' } }]));
  await page.getByRole('alert').filter({ hasText: 'Another stop is under way.' }).waitFor();
  await push('/api/status/stream', { end: null });
  await page.getByRole('heading', { name: 'nothing is waiting' }).waitFor();
  await page.getByRole('link', { name: 'Connect' }).click();
  await page.getByRole('button', { name: /^Copy/ }).first().click();
  await eventually(async () => assert.deepEqual(await said('copy'), [{ text: 'https://relay.example/mcp' }]));
  assert.deepEqual(page.complaints, []);
});
