// Settings: what is written, what holds at once, what waits, and what is refused.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { eventually } from './support/moments.js';
import { base } from './support/states.js';
import { suite } from './support/suite.js';

const { holdfast, scripted } = suite();
const go = (page, tab) => page.getByRole('link', { name: tab, exact: true }).click();
const panel = (page, name) => page.getByRole('region', { name, exact: true });
const file = (home) => readFile(home.config, 'utf8').catch(() => '');
const config = async (home) => (await (await home.api('GET', '/api/config')).json()).config;

async function settings(options) {
  const { home, page } = await holdfast(options);
  await go(page, 'Settings');
  await panel(page, 'Configuration and log').getByText(home.config).waitFor();
  return { home, page };
}

test('a setting is written into the file with its comments kept, and holds at once', async () => {
  const { home, page } = await settings({ config: '# mine\n[log]\nlevel = "warn" # quiet\n' });
  await eventually(async () => assert.equal(await page.getByLabel('Log level').inputValue(), 'warn'));
  await page.getByLabel('Log level').selectOption('Everything');
  await panel(page, 'Configuration and log').getByText('Applied.').waitFor();
  assert.equal(await file(home), '# mine\n[log]\nlevel = "debug" # quiet\n');
  assert.equal((await config(home)).log.level, 'debug');
});

test('switches show what came of them, and go with the space key', async () => {
  const { home, page } = await settings();
  for (const [name, table, key] of [
    ['Keep awake while calls run', 'power', 'keep_awake'],
    ['Remember what calls were asked and answered', 'calls', 'keep_bodies'],
    ['Outages and recoveries', 'notices', 'outages'],
    ['That Holdfast keeps running when the window closes', 'notices', 'still_running'],
  ]) {
    const before = (await config(home))[table][key];
    const lever = page.getByRole('switch', { name });
    await page.locator(`[role=switch][aria-checked="${before}"]`).and(lever).waitFor();
    await lever.press('Space');
    await page.locator(`[role=switch][aria-checked="${!before}"]`).and(lever).waitFor();
    await eventually(async () => assert.equal((await config(home))[table][key], !before));
  }
  assert.equal(await page.getByRole('switch', { name: 'Start at login' }).count(), 0, 'there is nothing to start');
});

test('an address that is none is refused at the field, and the file stays as it was', async () => {
  const { home, page } = await settings({ config: '# mine\n' });
  await page.getByLabel('Elsewhere').check();
  const address = page.getByLabel('Its address');
  await address.fill('relay');
  await address.press('Enter');
  await address.and(page.locator('[aria-invalid=true]')).waitFor();
  const note = page.locator(`#${await address.getAttribute('aria-describedby')}`);
  await eventually(async () => assert.match(await note.innerText(), /^url = "relay": /));
  assert.equal(await file(home), '# mine\n');
});

test('another relay waits for a restart and says so; going back takes it out of the file', async () => {
  const { home, page } = await settings();
  await page.getByLabel('Elsewhere').check();
  await page.getByLabel('Its address').fill('https://relay.example.com');
  await panel(page, 'Relay').getByRole('button', { name: 'Save' }).click();
  await panel(page, 'Relay').getByText('Saved. It takes effect after a restart.').waitFor();
  await panel(page, 'Relay').getByText('holdfast enroll https://relay.example.com').first().waitFor();
  await page.getByRole('button', { name: 'Restart now' }).waitFor();
  await eventually(async () => assert.match(await file(home), /url = "https:\/\/relay.example.com"/));
  await page.getByLabel('Inside Holdfast').check();
  await page.getByRole('button', { name: 'Restart now' }).waitFor({ state: 'detached' });
  await eventually(async () => assert.doesNotMatch(await file(home), /relay.example/));
});

test('what the command line overrules is written, and the window says that it is overruled', async () => {
  const { home, page } = await settings();
  const workspace = page.getByLabel('Folder that file tools work in');
  await eventually(async () => assert.equal(await workspace.inputValue(), home.workspace));
  await workspace.fill('~/none');
  await workspace.press('Enter');
  await workspace.and(page.locator('[aria-invalid=true]')).waitFor();
  assert.equal(await file(home), '', 'a folder that is not there is refused');
  await mkdir(join(home.root, 'code'));
  await workspace.fill('~/code');
  await workspace.press('Enter');
  await page.getByText('overridden by a command-line option').waitFor();
  await eventually(async () => assert.match(await file(home), /root = "~\/code"/));
});

test('a stricter policy holds at once, a looser one that runs programs is asked about', async () => {
  const { home, page } = await settings();
  const policy = async () => (await (await home.api('GET', '/api/status')).json()).app.policy;
  const profiles = panel(page, 'What clients may do here');
  await profiles.getByText('Holdfast is no sandbox').waitFor();
  await page.getByLabel('Review', { exact: true }).check();
  assert.equal(await policy(), 'agent', 'choosing alone changes nothing');
  await profiles.getByRole('button', { name: 'Change to Review' }).click();
  await profiles.getByText('Applied.').waitFor();
  assert.equal(await policy(), 'review');
  await page.getByLabel('Full', { exact: true }).check();
  await profiles.getByRole('button', { name: 'Change to Full' }).click();
  const question = page.getByRole('dialog', { name: 'Change to Full?' });
  await question.getByText('with your keys and passwords in reach').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await policy(), 'review');
  await profiles.getByRole('button', { name: 'Change to Full' }).click();
  await question.getByRole('button', { name: 'Change', exact: true }).click();
  await question.waitFor({ state: 'detached' });
  await eventually(async () => assert.equal(await policy(), 'full'));
});

test('who is asked about first, and what for, is chosen', async () => {
  const { home, page } = await settings();
  await page.getByRole('switch', { name: 'Every client' }).click();
  await page.getByLabel('Ask before calls that').selectOption('run programs');
  await panel(page, 'Ask me first').getByText('Applied.').nth(1).waitFor();
  await eventually(async () => assert.deepEqual((await config(home)).ask, { clients: ['*'], tools: 'runs' }));
  await page.getByRole('switch', { name: 'Every client' }).click();
  await page.getByLabel('Ask before calls that').waitFor({ state: 'detached' });
  await eventually(async () => assert.deepEqual((await config(home)).ask.clients, []));
});

test('two clients that are switched on at once are both asked about', async () => {
  const { holdfast: process, page } = await scripted(base(Date.now()));
  const grants = [{}];
  process.answers.client_list = [{ id: 'c1', name: 'Claude', grants }, { id: 'c2', name: 'Codex', grants }];
  let clients = [];
  process.answers['/api/config'] = () => ({ path: '/c.toml', valid: true, error: null, config: { ask: { clients } }, set: {} });
  let answer;
  const bothAsked = new Promise((done) => (answer = done));
  process.answers.configure = async ({ set }) => {
    await bothAsked;
    clients = set['ask.clients'];
    return { changed: ['ask.clients'], restart: [] };
  };
  await go(page, 'Settings');
  for (const name of ['Claude', 'Codex']) await page.getByRole('switch', { name }).click();
  answer();
  for (const name of ['Claude', 'Codex']) await page.getByRole('switch', { name, checked: true }).waitFor();
  assert.deepEqual(clients, ['c1', 'c2']);
});

test('an answer that comes late does not take back what a later one said', async () => {
  const { holdfast: process, page } = await scripted(base(Date.now()));
  let level = 'info';
  let late = null;
  const turns = new EventEmitter();
  process.answers['/api/config'] = async () => {
    const view = { path: '/c.toml', valid: true, error: null, config: { log: { level } }, set: {} };
    if (late !== null) {
      turns.emit('held');
      await late;
    }
    return view;
  };
  process.answers.configure = ({ set }) => {
    level = set['log.level'];
    return { changed: ['log.level'], restart: [] };
  };
  await go(page, 'Settings');
  const levels = page.getByLabel('Log level');
  await eventually(async () => assert.equal(await levels.inputValue(), 'info'));
  const held = once(turns, 'held');
  let answer;
  late = new Promise((done) => (answer = done));
  process.say({ health: [{ code: 'config_restart', since: Date.now(), severity: 'warning', text: 'The file was changed.' }] });
  await held;
  late = null;
  await levels.selectOption('Everything');
  await panel(page, 'Configuration and log').getByText('Applied.').waitFor();
  const answered = page.waitForResponse('**/api/config');
  answer();
  await (await answered).finished();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  assert.equal(await levels.inputValue(), 'debug');
});

test('a file that cannot be used is told with its place, and what ran before goes on', async () => {
  const { home, page } = await settings();
  await writeFile(home.config, '[log]\nlevl = "info"\n');
  await page.getByRole('alert').getByText('did you mean `level`?').waitFor();
  assert.equal((await config(home)).log.level, 'info');
});

test('what calls were asked and answered is shown with the call, but only from when it is switched on', async () => {
  const { home, page } = await settings();
  await writeFile(join(home.workspace, 'note.txt'), 'hold fast');
  const client = await home.client();
  const call = (path) => page.getByRole('listitem').filter({ hasText: path });
  await client.call('read_file', { path: 'note.txt' });
  await page.getByRole('switch', { name: 'Remember what calls' }).click();
  await panel(page, 'This machine').getByText('Applied.').waitFor();
  await client.call('list_dir', { path: '.' });
  await go(page, 'Now');
  await call('list_dir').getByRole('button').click();
  await call('list_dir').getByRole('figure').filter({ hasText: 'Answered' }).getByText('note.txt').waitFor();
  const figure = call('list_dir').getByRole('figure').filter({ hasText: 'Asked' });
  await eventually(async () => assert.match(await figure.innerText(), /"path": ?"\."/));
  const asked = page.waitForResponse(/\/api\/calls\/.*\/body$/);
  await call('read_file').getByRole('button').click();
  assert.equal((await asked).status(), 404);
  assert.equal(await call('read_file').getByRole('figure').count(), 0);
});

test('start at login shows what the system has, and asks the process to change it', async () => {
  const now = Date.now();
  const state = base(now);
  const { holdfast: desktop, page } = await scripted({ ...state, app: { ...state.app, autostart: false } });
  desktop.answers['/api/config'] = { path: '/c.toml', valid: true, error: null, config: {}, set: {} };
  desktop.answers.autostart = ({ on }) => {
    desktop.say({ app: { ...state.app, autostart: on } });
    return { done: true };
  };
  await go(page, 'Settings');
  const lever = page.getByRole('switch', { name: 'Start at login' });
  await lever.and(page.locator('[aria-checked=false]')).waitFor();
  await lever.click();
  await lever.and(page.locator('[aria-checked=true]')).waitFor();
  assert.ok(desktop.asked.some(({ body }) => body?.command === 'autostart' && body.on === true));
});
