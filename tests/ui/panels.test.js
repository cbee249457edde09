// Every panel, filled: what axe finds, how it fits, and that the keyboard reaches all of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from './support/moments.js';
import { Waiting } from './support/oauth.js';
import { suite } from './support/suite.js';
import { axe, overflow } from './support/window.js';

const { holdfast, opened } = suite();
const region = (page, name) => page.getByRole('region', { name, exact: true });

/** Each panel with as much in it as there can be. */
const PANELS = {
  connect: async (page) => {
    for (const fold of ['Show as a QR code', 'How to move the relay']) await page.getByText(fold).click();
    await page.getByLabel('What is it for?').fill('nightly');
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('alert').waitFor();
  },
  clients: async (page) => {
    await page.getByRole('button', { name: 'Revoke Claude Code' }).waitFor();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('A code has 8 characters').waitFor();
  },
  devices: async (page) => {
    await page.getByRole('button', { name: 'Make a code' }).click();
    await page.getByText('On the other machine:').waitFor();
    await page.getByRole('button', { name: /^Rename / }).click();
  },
  drill: async (page) => {
    await page.getByLabel('Cut the link for').fill('1');
    await page.getByRole('button', { name: 'Start the drill' }).click();
    await page.getByRole('alert').filter({ hasText: 'Delivered once.' }).waitFor();
  },
  channel: async (page) => {
    await page.getByLabel('Token of the bot').fill('nonsense');
    await page.getByRole('button', { name: 'Set up' }).click();
    await page.locator('[aria-invalid=true]').waitFor();
  },
  log: async (page) => {
    await page.getByRole('button', { name: 'Run checks' }).click();
    await page.getByRole('button', { name: 'Copy report' }).waitFor();
  },
  settings: async (page) => {
    await page.getByLabel('Full', { exact: true }).check();
    await page.getByLabel('Elsewhere', { exact: true }).check();
    await page.getByLabel('Its address').fill('relay');
    await page.getByLabel('Its address').press('Enter');
    await page.locator('[aria-invalid=true]').waitFor();
  },
};

test('every filled panel has no finding of axe in light and in dark, and fits into 420 pixels', async () => {
  const { home } = await holdfast();
  const inside = await Waiting.at(home.ready.mcp, 'owner', 'Claude Code');
  await home.run('approve', await inside.code());
  await inside.tokens();
  await Waiting.at(home.ready.mcp, 'owner', 'ChatGPT');
  for (const options of [{ colorScheme: 'light', viewport: { width: 420, height: 800 } }, { colorScheme: 'dark' }]) {
    const page = await opened(await home.url(), options);
    await page.getByRole('navigation').waitFor();
    for (const [panel, fill] of Object.entries(PANELS)) {
      const where = `${panel}, ${options.colorScheme}`;
      await page.evaluate((panel) => (location.hash = `#/${panel}`), panel);
      await fill(page);
      assert.deepEqual(await axe(page), [], where);
      assert.ok((await overflow(page)) <= 0, where);
    }
    assert.deepEqual(page.complaints, []);
  }
});

test('a question keeps the focus inside, has no finding of axe, and fits into 420 pixels', async () => {
  const { home, page } = await holdfast({}, { viewport: { width: 420, height: 800 } });
  await home.run('token', 'create', '--name', 'nightly');
  await page.getByRole('link', { name: 'Clients', exact: true }).click();
  await page.getByRole('button', { name: 'Revoke nightly' }).press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  assert.deepEqual(await axe(page), []);
  assert.ok((await overflow(page)) <= 0);
  for (let presses = 0; presses < 5; presses += 1) {
    await page.keyboard.press('Tab');
    const outside = await page.evaluate('document.activeElement !== document.body && !document.activeElement.closest("dialog")');
    assert.equal(outside, false);
  }
});

test('the tabs and what a tab holds are reached by the keyboard alone', async () => {
  const { page } = await holdfast();
  await page.getByRole('link', { name: 'Settings', exact: true }).waitFor();
  const focused = () => page.evaluate('document.activeElement.textContent.trim()');
  for (let presses = 0; presses < 12 && (await focused()) !== 'Settings'; presses += 1) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await region(page, 'What clients may do here').waitFor();
  await page.keyboard.press('Tab');
  await eventually(async () => assert.equal(await page.evaluate('document.activeElement.value'), 'agent'));
  await page.keyboard.press('ArrowUp');
  await page.getByRole('button', { name: 'Change to Edit' }).waitFor();
});
