// The address, lines for the common clients, and tokens.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { encode } from '../../ui/node_modules/uqr/dist/index.mjs';
import { Client } from './support/mcp.js';
import { eventually, glimpse } from './support/moments.js';
import { suite } from './support/suite.js';

const { holdfast } = suite();
const CLIPBOARD = { permissions: ['clipboard-read', 'clipboard-write'] };
const go = (page, tab) => page.getByRole('link', { name: tab, exact: true }).click();
const panel = (page, name) => page.getByRole('region', { name, exact: true });
const copied = (page) => page.evaluate('navigator.clipboard.readText()');

test('the MCP address is copied, and its QR code holds it and nothing else', async () => {
  const { home, page } = await holdfast({}, CLIPBOARD);
  await go(page, 'Connect');
  const said = await glimpse(page, 'Copied');
  await page.getByRole('button', { name: 'Copy MCP address' }).click();
  await said();
  assert.equal(await copied(page), home.ready.mcp);
  await page.getByText('Show as a QR code').click();
  const { size, data } = encode(home.ready.mcp, { ecc: 'M', border: 3 });
  const dark = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  const code = page.getByRole('img', { name: 'The MCP address as a QR code' });
  assert.equal(await code.getAttribute('viewBox'), `0 0 ${size} ${size}`);
  assert.equal(await code.locator('path').getAttribute('d'), dark);
});

test('each client has its line with the address of this machine, and what the web needs is said', async () => {
  const { home, page } = await holdfast({}, CLIPBOARD);
  await go(page, 'Connect');
  const lines = {
    'Claude Code': `claude mcp add --transport http holdfast ${home.ready.mcp}`,
    Codex: `codex mcp add holdfast --url ${home.ready.mcp}\ncodex mcp login holdfast`,
    'MCP Inspector': 'npx @modelcontextprotocol/inspector',
  };
  for (const [client, line] of Object.entries(lines)) {
    const copy = page.getByRole('button', { name: `Copy ${client}` });
    const fold = page.locator('details', { has: page.locator('summary', { hasText: client }) });
    if (!(await fold.evaluate((details) => details.open))) await fold.locator('summary').click();
    await copy.click();
    await page.waitForFunction(async (line) => (await navigator.clipboard.readText()) === line, line);
  }
  await page.getByText('ChatGPT, Claude on the web').click();
  await page.getByText('This one leads to this computer only').waitFor();
});

test('a token is shown once, works, and is nowhere in the window when it was put away', async () => {
  const { home, page } = await holdfast({}, CLIPBOARD);
  await go(page, 'Connect');
  const form = panel(page, 'A token for scripts');
  await form.getByLabel('What is it for?').fill('nightly');
  await form.getByLabel('Permissions, at most').selectOption('Read only');
  await form.getByLabel('Days until it expires').fill('7');
  await form.getByRole('button', { name: 'Create token' }).click();
  await form.getByRole('alert').getByText('it is not shown again').waitFor();
  await form.getByRole('button', { name: 'Copy' }).click();
  const token = await eventually(async () => {
    const text = await copied(page);
    assert.match(text, /^hf_pat_/);
    return text;
  });
  const client = new Client(home.ready.mcp, token);
  assert.equal((await client.call('list_dir', {})).isError ?? false, false);
  const written = await client.call('write_file', { path: 'a.txt', content: 'a' });
  assert.match(JSON.stringify(written), /authorization_denied/);
  await form.getByRole('button', { name: 'Done' }).click();
  await form.getByRole('alert').waitFor({ state: 'detached' });
  const left = await page.evaluate(
    '[document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href].join()',
  );
  assert.ok(!left.includes(token));
  const [listed] = await (await home.api('POST', '/api/command', { command: 'token_list' })).json();
  assert.deepEqual([listed.name, listed.role, listed.expires - listed.created], ['nightly', 'reviewer', 7 * 86_400]);
});

test('a token without a name or with a wrong number of days is refused at the field', async () => {
  const { home, page } = await holdfast();
  await go(page, 'Connect');
  const form = panel(page, 'A token for scripts');
  await form.getByLabel('Days until it expires').fill('367');
  await form.getByRole('button', { name: 'Create token' }).click();
  await form.getByText('Give it a name.').waitFor();
  await form.getByText('From 1 to 366 days.').waitFor();
  assert.deepEqual(await (await home.api('POST', '/api/command', { command: 'token_list' })).json(), []);
});
