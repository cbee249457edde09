// The log's end, the doctor, and the text for somebody who helps.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { eventually, glimpse } from './support/moments.js';
import { base } from './support/states.js';
import { suite } from './support/suite.js';

const { holdfast, scripted } = suite();
const go = (page, tab) => page.getByRole('link', { name: tab, exact: true }).click();
const panel = (page, name) => page.getByRole('region', { name, exact: true });
const log = (page) => page.getByRole('log', { name: 'Log' });
const line = (number, level = 'INFO') =>
  JSON.stringify({ timestamp: '2026-11-30T21:00:00Z', level, message: `line ${number}`, target: 'holdfast_host::link', n: number });

test('lines come as they are written, and are found by words and by level', async () => {
  const { home, page } = await holdfast();
  await go(page, 'Log');
  await log(page).getByText('the relay can reach this machine').waitFor();
  await home.run('policy', 'set', 'review');
  await log(page).getByText('policy').first().waitFor();
  await page.getByLabel('Search').fill('LISTENS addr');
  await log(page).getByText('the relay can reach this machine').waitFor({ state: 'detached' });
  await eventually(async () => assert.equal(await log(page).getByText('the relay listens').count(), 1));
  await page.getByLabel('Search').fill('');
  await page.getByLabel('Minimum level').selectOption('Errors');
  await log(page).getByText('No matching lines.').waitFor();
});

test('the log follows its end, and stops following when somebody scrolls up', async () => {
  const { holdfast: process, page } = await scripted(base(Date.now()));
  const known = Array.from({ length: 200 }, (_, number) => line(number));
  process.streams['/api/logs/stream'] = known;
  await go(page, 'Log');
  await log(page).getByText('line 199').waitFor();
  const fromEnd = () => log(page).evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
  await page.waitForFunction(() => {
    const box = document.querySelector('[role=log]');
    return box.scrollHeight - box.scrollTop - box.clientHeight < 2;
  });
  await log(page).evaluate((box) => (box.scrollTop = 0));
  await page.getByLabel('Follow').and(page.locator(':not(:checked)')).waitFor();
  process.send('/api/logs/stream', line(200, 'ERROR'));
  await log(page).getByText('line 200').waitFor({ state: 'attached' });
  assert.ok((await fromEnd()) > 100);
  await page.getByLabel('Follow').check();
  process.send('/api/logs/stream', line(201));
  await log(page).getByText('line 201').waitFor();
  await eventually(async () => assert.ok((await fromEnd()) < 24));
});

test('lines that come while nothing is drawn are kept up to what the log shows, and no more', async () => {
  const { holdfast: process, page } = await scripted(base(Date.now()));
  process.streams['/api/logs/stream'] = [line(0)];
  await go(page, 'Log');
  await log(page).getByText('line 0').waitFor();
  await page.evaluate(() => {
    Object.assign(globalThis, { due: [], most: 0, last: '' });
    globalThis.requestAnimationFrame = (draw) => due.push(draw);
    const { push } = Array.prototype;
    Array.prototype.push = function (...items) {
      const text = items[0]?.text;
      if (typeof text === 'string') [most, last] = [Math.max(most, this.length), text];
      return push.apply(this, items);
    };
  });
  for (let number = 1; number <= 3_000; number += 1) process.send('/api/logs/stream', line(number));
  await page.waitForFunction(() => last === 'line 3000', null, { polling: 50 });
  assert.equal(await page.evaluate('most'), 1_000);
  await page.evaluate('due.forEach((draw) => draw())');
  await log(page).getByText('line 3000').waitFor();
  await log(page).getByText('line 2000').waitFor({ state: 'detached' });
});

test('the doctor tells each finding, and copies the report that the command line prints', async () => {
  const { home, page } = await holdfast({}, { permissions: ['clipboard-read', 'clipboard-write'] });
  await go(page, 'Log');
  await page.getByRole('button', { name: 'Run checks' }).click();
  await panel(page, 'Doctor').getByRole('listitem').filter({ hasText: 'workspace' }).getByText(home.workspace).waitFor();
  const said = await glimpse(page, 'Copied');
  await page.getByRole('button', { name: 'Copy report' }).click();
  await said();
  const steady = (text) => text.replace(/answered in \d+ ms|\d+ MiB/g, '').trim();
  const printed = await home.run('doctor').catch((error) => error.stdout);
  assert.equal(steady(await page.evaluate('navigator.clipboard.readText()')), steady(printed));
});

test('the support text is shown before it goes anywhere, is saved as it is shown, and holds no token', async () => {
  const { home, page } = await holdfast();
  const token = await home.run('token', 'create', '--name', 'nightly');
  const api = JSON.parse(await readFile(join(home.root, 'data', 'api.json'), 'utf8')).token;
  await go(page, 'Log');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  const shown = await page.getByRole('dialog').getByRole('textbox').inputValue();
  assert.match(shown, /the relay listens/);
  for (const secret of [token, api]) assert.ok(!shown.includes(secret));
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save as a file' }).click();
  assert.equal(await readFile(await (await download).path(), 'utf8'), shown);
});

test('opening the folder asks the process to do it', async () => {
  const { holdfast: process, page } = await scripted(base(Date.now()));
  await go(page, 'Log');
  await page.getByRole('button', { name: 'Open folder' }).click();
  await process.lastAsked({ command: 'open_logs' });
});
