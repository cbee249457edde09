// Pictures of the window for the documentation, of the real Holdfast at work: node pictures.js FOLDER

import { join } from 'node:path';

import { Home } from './support/home.js';
import { Client } from './support/mcp.js';
import { Waiting } from './support/oauth.js';
import { openBrowser, openPage } from './support/window.js';

const [folder] = process.argv.slice(2);
const SIZE = { viewport: { width: 720, height: 400 }, deviceScaleFactor: 1.5 };
const browser = await openBrowser();

async function shown(home, scheme) {
  const page = await openPage(browser, await home.url(), { colorScheme: scheme, ...SIZE });
  await page.getByRole('heading', { level: 1 }).waitFor();
  return page;
}

/** When fonts and data have come and nothing moves. */
async function picture(page, name) {
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled', fullPage: true });
}

const runs = (page) => page.getByRole('listitem').filter({ hasText: 'run_process' }).getByText('running', { exact: true }).first().waitFor();

/** Scripts that run until a file of their name is there. */
const until = (name) => `while [ ! -e ${name} ]; do sleep 0.1; done`;
const SCRIPTS = JSON.stringify({ scripts: { test: until('tested'), build: until('built') } });

/** A client that was let in by the code of its page. */
async function client(home, name) {
  const [account] = JSON.parse(await home.run('account', 'list', '--json'));
  const waiting = await Waiting.at(home.ready.mcp, account.name, name);
  await home.run('approve', await waiting.code());
  const { access_token: token } = await waiting.tokens();
  return new Client(home.ready.mcp, token);
}

const fresh = await Home.serve();
await picture(await shown(fresh, 'light'), 'first-steps');
await fresh.remove();

const home = await Home.serve();
const [chat, code] = [await client(home, 'ChatGPT'), await client(home, 'Claude Code')];
await chat.call('write_file', { path: 'package.json', content: SCRIPTS });
await chat.call('write_file', { path: 'notes/plan.md', content: '# Plan\n\n1. Measure\n2. Mend\n' });
await code.call('read_file', { path: 'notes/plan.md' });
await chat.call('search_text', { query: 'Mend' });
const running = chat.call('run_process', { argv: ['npm', 'test'] });
const light = await shown(home, 'light');
await runs(light);

const drill = (await home.api('POST', '/api/drill', { cut_ms: 16_000, force: true })).text();
await light.getByRole('region', { name: 'Relay link' }).getByText('Outage').waitFor();
await picture(light, 'outage');
await light.getByRole('heading', { level: 1, name: /^Ready/ }).waitFor({ timeout: 60_000 });
await drill;
await code.call('list_dir', { path: 'notes' });
await code.call('write_file', { path: 'tested', content: '' });
await running;
const second = chat.call('run_process', { argv: ['npm', 'run', 'build'] });
await runs(light);
await picture(light, 'window-light');
await picture(await shown(home, 'dark'), 'window-dark');
await code.call('write_file', { path: 'built', content: '' });
await second;

await light.getByRole('link', { name: 'Clients' }).click();
await picture(light, 'clients');
await home.remove();
await browser.close();
