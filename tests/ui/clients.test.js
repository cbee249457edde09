// Who may use this machine: letting in, revoking, cutting off.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client } from './support/mcp.js';
import { eventually } from './support/moments.js';
import { Waiting } from './support/oauth.js';
import { base } from './support/states.js';
import { suite } from './support/suite.js';

const { holdfast, scripted } = suite();
const go = (page, tab) => page.getByRole('link', { name: tab, exact: true }).click();
const panel = (page, name) => page.getByRole('region', { name, exact: true });
const item = (page, text) => page.getByRole('listitem').filter({ hasText: text });
const codeField = (page) => page.getByLabel('Code that its browser page shows');

const allowed = async (home, token) => {
  const { error } = await new Client(home.ready.mcp, token).call('list_dir', {}).catch((error) => ({ error }));
  return error === undefined;
};

/** The token of a client that was let in by the command line. */
async function letIn(home, name) {
  const guest = await Waiting.at(home.ready.mcp, 'owner', name);
  await home.run('approve', await guest.code());
  return (await guest.tokens()).access_token;
}

test('a client is let in by typing the code of its page, in whatever case and with blanks', async () => {
  const { home, page } = await holdfast();
  await go(page, 'Clients');
  const guest = await Waiting.at(home.ready.mcp, 'owner', 'Claude Code');
  const waiting = panel(page, 'Access requests');
  await waiting.getByText('Acts as owner; returns to 127.0.0.1').waitFor();
  const code = await guest.code();
  assert.ok(!(await waiting.innerText()).includes(code), 'the window never shows the code');
  await codeField(page).fill(` ${code.toLowerCase().replace('-', ' ')} `);
  await codeField(page).press('Enter');
  await page.getByRole('alert').filter({ hasText: 'Approved. Go back to Claude Code’s page' }).waitFor();
  await waiting.waitFor({ state: 'detached' });
  assert.ok(await allowed(home, (await guest.tokens()).access_token));
  await panel(page, 'Clients').getByText('use tools, stay signed in').waitFor();
});

test('what cannot be a code is refused at the field and does not count as a wrong one', async () => {
  const { home, page } = await holdfast();
  const guest = await Waiting.at(home.ready.mcp, 'owner', 'Claude Code');
  for (const typed of ['', 'ABCD', 'ABCD-EFG1', 'ABCDEFGHI']) {
    await codeField(page).fill(typed);
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('A code has 8 characters: letters and the digits 2 to 7.').waitFor();
  }
  await codeField(page).fill(await guest.code());
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('alert').filter({ hasText: 'Approved.' }).waitFor();
});

test('the third wrong code cancels everything that waits, and the window says so', async () => {
  const { home, page } = await holdfast();
  await Waiting.at(home.ready.mcp, 'owner', 'Claude Code');
  await Waiting.at(home.ready.mcp, 'owner', 'ChatGPT');
  const refusals = page.getByRole('button', { name: 'Refuse' });
  await refusals.nth(1).waitFor();
  for (const wrong of ['AAAA-AAAA', 'AAAA-AAAB']) {
    await codeField(page).fill(wrong);
    await codeField(page).press('Enter');
    await page.getByText('No request has that code.').waitFor();
    assert.equal(await refusals.count(), 2);
  }
  await codeField(page).fill('AAAA-AAAC');
  await codeField(page).press('Enter');
  await page.getByRole('alert').filter({ hasText: 'all waiting requests are cancelled' }).waitFor();
  await refusals.first().waitFor({ state: 'detached' });
});

test('a wrong code and then a refusal are not said to be three wrong codes', async () => {
  const { home, page } = await holdfast();
  await Waiting.at(home.ready.mcp, 'owner', 'Claude Code');
  await codeField(page).fill('AAAA-AAAA');
  await codeField(page).press('Enter');
  await page.getByText('No request has that code.').waitFor();
  await page.getByRole('button', { name: 'Refuse Claude Code' }).click();
  await codeField(page).waitFor({ state: 'detached' });
  assert.equal(await page.getByText('all waiting requests are cancelled').count(), 0);
});

test('a client that waits is refused by one button, and its code is worth nothing', async () => {
  const { home, page } = await holdfast();
  const guest = await Waiting.at(home.ready.mcp, 'owner', 'Claude Code');
  await page.getByRole('button', { name: 'Refuse Claude Code' }).click();
  await codeField(page).waitFor({ state: 'detached' });
  await assert.rejects(guest.code(), 'its page shows no code any more');
});

test('revoking a client is asked about, gives the focus back, and ends its access', async () => {
  const { home, page } = await holdfast();
  const access = await letIn(home, 'Claude Code');
  await go(page, 'Clients');
  const revoke = page.getByRole('button', { name: 'Revoke Claude Code' });
  await revoke.press('Enter');
  await page.getByRole('dialog', { name: 'Revoke Claude Code?' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await eventually(async () => assert.ok(await revoke.evaluate((button) => button === document.activeElement)));
  assert.ok(await allowed(home, access));
  await revoke.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('No clients yet.').waitFor();
  assert.ok(!(await allowed(home, access)));
  await panel(page, 'Clients').locator('h2:focus').waitFor();
});

test('a token is revoked', async () => {
  const { home, page } = await holdfast();
  const token = await home.run('token', 'create', '--name', 'nightly');
  await go(page, 'Clients');
  await item(page, 'nightly').getByText('everything the policy allows').waitFor();
  await page.getByRole('button', { name: 'Revoke nightly' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('No tokens.').waitFor();
  assert.ok(!(await allowed(home, token)));
});

test('cutting all access ends every client and token, says how many, and stops the link', async () => {
  const { home, page } = await holdfast();
  const access = await letIn(home, 'Claude Code');
  const token = await home.run('token', 'create', '--name', 'nightly');
  await go(page, 'Clients');
  await page.getByRole('button', { name: 'Cut all access' }).click();
  const dialog = page.getByRole('dialog', { name: 'Cut all access?' });
  await dialog.getByText('every client must be approved again').waitFor();
  await dialog.getByRole('button', { name: 'Cut all access' }).click();
  await page.getByRole('alert').getByText('2 clients and tokens lost their access. The link is stopped.').waitFor();
  for (const one of [access, token]) assert.ok(!(await allowed(home, one)));
  await eventually(async () => {
    const status = await (await home.api('GET', '/api/status')).json();
    assert.equal(status.relay.state, 'stopped');
  });
});

test('where the relay is elsewhere, its lists are not claimed and cutting says what it cannot reach', async () => {
  const { holdfast: elsewhere, page } = await scripted(base(Date.now()));
  const refuse = () => {
    throw { status: 409, code: 'no_relay_here', message: 'the relay is elsewhere' };
  };
  Object.assign(elsewhere.answers, { client_list: refuse, token_list: refuse, device_list: refuse, account_list: refuse });
  elsewhere.answers.cut_all_access = { revoked: null };
  await go(page, 'Clients');
  await panel(page, 'Clients').getByText('The relay runs on another machine').waitFor();
  assert.equal(await panel(page, 'Tokens').count(), 0);
  await page.getByRole('button', { name: 'Cut all access' }).click();
  await page.getByRole('dialog').getByText('Clients and tokens belong to the relay elsewhere').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cut all access' }).click();
  await page.getByRole('alert').getByText('What clients and tokens were granted is still with the relay').waitFor();
});
