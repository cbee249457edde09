// Machines of the relay: names, the default, revoking, and joining by a code.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Home } from './support/home.js';
import { eventually } from './support/moments.js';
import { suite } from './support/suite.js';

const { holdfast } = suite();
const go = (page, tab) => page.getByRole('link', { name: tab, exact: true }).click();
const panel = (page, name) => page.getByRole('region', { name, exact: true });
const item = (page, text) => page.getByRole('listitem').filter({ hasText: text });
const devices = async (home) => (await home.api('POST', '/api/command', { command: 'device_list' })).json();

/** Another machine, joined with a code that the window made. */
async function joined(home, page, name) {
  await page.getByRole('button', { name: 'Make a code' }).click();
  const code = await page.getByText(/^[A-Z2-7]{4}(-[A-Z2-7]{4}){4}$/).innerText();
  const other = await Home.make();
  await other.run('enroll', new URL(home.ready.mcp).origin, code, '--name', name).finally(() => other.remove());
  await item(page, name).waitFor();
}

test('a device is renamed by the keyboard alone, and a name that cannot be is refused at the field', async () => {
  const { home, page } = await holdfast();
  await go(page, 'Devices');
  const [{ name }] = await devices(home);
  await page.getByRole('button', { name: `Rename ${name}` }).press('Enter');
  const field = page.getByLabel('Name of the device');
  await eventually(async () => assert.equal(await field.evaluate((input) => input.ownerDocument.getSelection().toString()), name));
  await page.keyboard.type(' ');
  await page.keyboard.press('Enter');
  await field.and(page.locator('[aria-invalid=true]')).waitFor();
  assert.equal((await devices(home))[0].name, name);
  await field.fill('workshop');
  await page.keyboard.press('Enter');
  const rename = page.getByRole('button', { name: 'Rename workshop' });
  await rename.waitFor();
  await eventually(async () => assert.ok(await rename.evaluate((button) => button === document.activeElement)));
  assert.equal((await devices(home))[0].name, 'workshop');
});

test('a code from the window lets another machine join once; it becomes the default and is revoked', async () => {
  const { home, page } = await holdfast();
  await go(page, 'Devices');
  await page.getByText('The relay listens on this computer only').waitFor();
  await joined(home, page, 'laptop');
  await page.getByRole('button', { name: 'Make default laptop' }).click();
  await item(page, 'laptop').getByText('default', { exact: true }).waitFor();
  assert.deepEqual((await devices(home)).map((device) => device.default), [false, true]);
  await page.getByRole('button', { name: 'Revoke laptop' }).click();
  await page.getByRole('dialog', { name: 'Revoke laptop?' }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('Revoked (1)').click();
  await item(page, 'laptop').getByText(/^Revoked on /).waitFor();
  assert.deepEqual((await devices(home)).map((device) => device.revoked === null), [true, false]);
});

test('revoking the only device says that nothing can be reached afterwards', async () => {
  const { home, page } = await holdfast();
  await go(page, 'Devices');
  const [{ name }] = await devices(home);
  await panel(page, 'Devices').getByRole('button', { name: `Revoke ${name}` }).click();
  await page.getByRole('dialog').getByText('This is the only device. Clients will have nothing to reach.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await devices(home))[0].revoked, null);
});
