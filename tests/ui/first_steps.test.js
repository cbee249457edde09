// From a fresh install to a proven promise.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from './support/moments.js';
import { suite } from './support/suite.js';

const { holdfast } = suite();
const panel = (page, name) => page.getByRole('region', { name });
const steps = (page) => panel(page, /First steps|All set/);
/** Until so many steps are checked. */
const done = (page, count) =>
  eventually(async () => assert.equal(await steps(page).getByRole('listitem').filter({ hasText: 'done' }).count(), count));

test('on a fresh install the steps stand first, check themselves as they are done, and stay away afterwards', async () => {
  const { home, page } = await holdfast();
  await panel(page, 'First steps').waitFor();
  await page.getByRole('button', { name: 'Connect a client' }).waitFor();
  await done(page, 1);
  await home.run('token', 'create', '--name', 'script');
  await page.getByRole('button', { name: 'Run the drill' }).click();
  await page.getByLabel('Cut the link for').fill('1');
  await page.getByRole('button', { name: 'Start the drill' }).click();
  await page.getByRole('alert').filter({ hasText: 'Delivered once.' }).waitFor();
  await page.getByRole('link', { name: 'Now', exact: true }).click();
  await panel(page, 'All set').waitFor();
  await done(page, 3);
  await panel(page, 'All set').getByRole('button', { name: 'Close' }).click();
  await page.reload();
  await page.getByRole('region', { name: 'Calls' }).waitFor();
  assert.equal(await steps(page).count(), 0);
});

test('the steps can be skipped, stay skipped, and are shown again from the settings', async () => {
  const { page } = await holdfast();
  await panel(page, 'First steps').getByRole('button', { name: 'Skip' }).click();
  await page.reload();
  await page.getByRole('region', { name: 'Calls' }).waitFor();
  assert.equal(await panel(page, 'First steps').count(), 0);
  await page.getByRole('link', { name: 'Settings', exact: true }).click();
  await page.getByRole('button', { name: 'Show the first steps' }).click();
  await panel(page, 'First steps').waitFor();
});

test('where somebody was let in already the steps are not shown', async () => {
  const { home, page } = await holdfast();
  await home.run('token', 'create', '--name', 'script');
  const looked = page.waitForResponse((response) => response.request().postData()?.includes('token_list') ?? false);
  await page.reload();
  await looked;
  await page.getByRole('region', { name: 'Calls' }).waitFor();
  assert.equal(await panel(page, 'First steps').count(), 0);
});
