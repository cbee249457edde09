// The first screen in states that a real Holdfast reaches rarely or slowly.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from './support/moments.js';
import { base, asked, calm, cut, empty, seat, stopped, timeline } from './support/states.js';
import { suite } from './support/suite.js';
import { axe, overflow } from './support/window.js';

const { scripted, opened } = suite();
const STATES = { asked, calm, cut, empty, stopped };
const heading = (page) => page.getByRole('heading', { level: 1 });
const panel = (page, name) => page.getByRole('region', { name });
const row = (page, text) => page.getByRole('listitem').filter({ hasText: text });

test('every state has no finding of axe, in light and in dark, with a call and the outages opened', async () => {
  for (const colorScheme of ['light', 'dark']) {
    for (const [name, state] of Object.entries(STATES)) {
      const now = Date.now();
      const { page } = await scripted(state(now), name === 'empty' ? [] : timeline(now), { colorScheme });
      await heading(page).waitFor();
      if (name !== 'empty') await row(page, 'git push').getByRole('button').click();
      if (name === 'cut') await page.getByRole('button', { name: 'List', exact: true }).click();
      assert.deepEqual(await axe(page), [], `${name}, ${colorScheme}`);
      assert.deepEqual(page.complaints, [], `${name}, ${colorScheme}`);
    }
  }
});

test('every state fits into 420 pixels without scrolling sideways', async () => {
  for (const [name, state] of Object.entries(STATES)) {
    const now = Date.now();
    const { page } = await scripted(state(now), timeline(now), { viewport: { width: 420, height: 700 } });
    await heading(page).waitFor();
    await row(page, 'git push').getByRole('button').click();
    assert.equal(await overflow(page), 0, name);
  }
});

test('no state shows the id of a text that is missing', async () => {
  for (const [name, state] of Object.entries(STATES)) {
    const now = Date.now();
    const { page } = await scripted(state(now), timeline(now));
    await heading(page).waitFor();
    for (const call of await page.locator('li button[aria-expanded]').all()) await call.click();
    assert.doesNotMatch(await page.locator('body').innerText(), /\bui-[a-z-]+|\{|undefined|NaN/, name);
  }
});

test('an outage says what was lost, since when, why, when the next try is, and how long calls are kept', async () => {
  const now = Date.now();
  const { holdfast, page } = await scripted(cut(now), timeline(now), { at: now });
  await page.getByRole('heading', { name: 'Reconnecting to relay.example — 3 calls are waiting, nothing is lost' }).waitFor();
  for (const said of [
    /Link lost 12 s ago: the network changed\. Trying again in 4 s \(try 4\)\./,
    /Outage\s*12 s\s*calls are kept for another 1 min 48 s/,
    /2 detached, 1 result held, oldest 34 s/,
  ]) {
    await eventually(async () => assert.match(await page.locator('body').innerText(), said));
  }
  await panel(page, 'Relay link').getByText('Next try in').waitFor();
  await panel(page, 'Relay link').getByRole('button', { name: 'Now' }).click();
  await holdfast.lastAsked({ command: 'try_now' });
});

test('countdowns count down to the try and then say that it runs', async () => {
  const now = Date.now();
  const { page } = await scripted(cut(now), [], { at: now });
  await panel(page, 'Relay link').getByText('Next try in 4 s').waitFor();
  await page.clock.setFixedTime(now + 2_000);
  await panel(page, 'Relay link').getByText('Next try in 2 s').waitFor();
  await page.clock.setFixedTime(now + 4_000);
  await panel(page, 'Relay link').getByText('Trying now').waitFor();
});

test('the strip tells its outages to the pointer, to those who hear it, and as a list', async () => {
  const now = Date.now();
  const { page } = await scripted(calm(now), [], { at: now });
  const day = panel(page, 'Last 24 hours: 4 outages, 3 min in all; 17 calls carried over, 1 lost');
  const strip = day.getByRole('img');
  assert.match(await strip.getAttribute('aria-label'), /11 s · the network changed · 2 calls carried over, 0 lost/);
  // What stands above may still move it.
  const points = (share, more, said) =>
    eventually(async () => {
      const { width } = await strip.boundingBox();
      await strip.hover({ position: { x: width * share + more, y: 5 } });
      await day.getByText(said).waitFor({ timeout: 5_000 });
    });
  await points(1 - 10 / 24, 2, /, 11 s · the network changed · 2 calls carried over, 0 lost/);
  await points(0.05, 0, 'Before this start only outages are known');
  await day.getByRole('button', { name: 'List', exact: true }).click();
  await day.getByRole('listitem').nth(3).waitFor();
  assert.equal(await day.getByRole('listitem').count(), 4);
  const first = day.getByRole('listitem').first();
  await eventually(async () => assert.match(await first.innerText(), /31 s\s+4 calls carried over, 1 lost\s+no byte came for 25 s/));
});

test('the list of calls is filtered by words and by state', async () => {
  const now = Date.now();
  const { page } = await scripted(calm(now), timeline(now));
  const calls = panel(page, 'Calls');
  const shown = (count) => eventually(async () => assert.equal(await calls.getByRole('listitem').count(), count));
  await shown(8);
  await calls.getByRole('searchbox').fill('claude readme');
  await shown(1);
  await calls.getByRole('searchbox').fill('nothing like that');
  await calls.getByText('No matching calls.').waitFor();
  await calls.getByRole('searchbox').fill('');
  await calls.getByRole('combobox').selectOption('failed');
  await shown(1);
  assert.match(await calls.getByRole('listitem').innerText(), /write_file\s+Codex · \.\.\/outside\.txt\s+failed/);
});

test('a call opens to its steps with their times and its error', async () => {
  const now = Date.now();
  const { page } = await scripted(calm(now), timeline(now));
  await row(page, 'outside.txt').getByRole('button').click();
  const steps = row(page, 'outside.txt').first().locator('ol li');
  await eventually(async () => {
    const text = (await steps.allInnerTexts()).map((line) => line.replace(/^\d\d:\d\d:\d\d\s+/, '').replace(/\s+/g, ' '));
    assert.deepEqual(text, [
      'received and started', 'finished failed: path_boundary + 6 ms', 'result sent + 1 ms', 'delivery confirmed + 23 ms',
    ]);
  });
});

test('a question is answered with yes or no, and remembered if that is wanted', async () => {
  const now = Date.now();
  const { holdfast, page } = await scripted(asked(now), []);
  const question = panel(page, 'ChatGPT wants to use exec_command');
  await question.getByText('git push origin main --force-with-lease').waitFor();
  await question.getByRole('button', { name: 'Deny' }).click();
  await holdfast.lastAsked({ command: 'answer', question: 'q1', allow: false, remember: false });
  await question.getByRole('checkbox').check();
  await question.getByRole('button', { name: 'Allow' }).click();
  await holdfast.lastAsked({ command: 'answer', question: 'q1', allow: true, remember: true });
  holdfast.say({ questions: [] });
  await question.waitFor({ state: 'detached' });
});

test('the seat is taken after a sentence on what will happen, and let go of', async () => {
  const now = Date.now();
  const laptop = { this: false, instance: 'i-2', pid: 991, host: 'laptop', since: now - 60_000 };
  const { holdfast, page } = await scripted(base(now, { seat: seat(now, { state: 'off', holder: laptop }) }), []);
  await page.getByRole('button', { name: 'Take' }).click();
  const dialog = page.getByRole('dialog', { name: 'Take the seat?' });
  await dialog.getByText('laptop (process 991) runs this bot now.').waitFor();
  assert.deepEqual(await axe(page), []);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(holdfast.asked.length, 0);
  await page.getByRole('button', { name: 'Take' }).click();
  await dialog.getByRole('button', { name: 'Take' }).click();
  await holdfast.lastAsked({ command: 'seat_take' });
  holdfast.say({ seat: seat(now) });
  await page.getByRole('button', { name: 'Release' }).click();
  await holdfast.lastAsked({ command: 'seat_release' });
});

test('a refused command is told at the top and can be dismissed', async () => {
  const { holdfast, page } = await scripted(calm(Date.now()), []);
  holdfast.answers.stop = () => {
    throw { status: 409, code: 'busy', message: 'another stop is under way' };
  };
  await page.getByRole('button', { name: 'Stop' }).click();
  const alert = page.getByRole('alert').filter({ hasText: 'Another stop is under way.' });
  await alert.getByRole('button', { name: 'Dismiss' }).click();
  await alert.waitFor({ state: 'detached' });
});

test('silence is told with the age of what is shown, and the window finds back by itself', async () => {
  const { holdfast, page } = await scripted(calm(Date.now()), []);
  await heading(page).waitFor();
  const { port } = holdfast;
  await holdfast.silence();
  await page.getByText(/Holdfast is not responding\. Showing the state from \d+ s ago/).waitFor();
  holdfast.snapshot = stopped(Date.now());
  await holdfast.listen(port);
  await page.getByRole('heading', { name: 'Stopped: this machine cannot be reached' }).waitFor();
  await page.getByText('Holdfast is not responding').waitFor({ state: 'detached' });
});

test('a token that is not good any more leads to the words how to open the window again', async () => {
  const { holdfast, page } = await scripted(calm(Date.now()), []);
  await heading(page).waitFor();
  const { port } = holdfast;
  await holdfast.silence();
  holdfast.forget();
  await holdfast.listen(port);
  await page.getByText('holdfast open', { exact: true }).waitFor();
  await page.getByRole('heading', { name: 'This link has expired' }).waitFor();
  const nobody = await opened(`http://127.0.0.1:${port}/#wrong`);
  await nobody.getByText('holdfast open', { exact: true }).waitFor();
  assert.equal(new URL(nobody.url()).hash, '');
  assert.deepEqual(await axe(nobody), []);
});

test('what is said aloud is the state and who asks, not what counts', async () => {
  const now = Date.now();
  const { holdfast, page } = await scripted(base(now), []);
  const said = page.locator('p[aria-live=polite].heard').last();
  await said.filter({ hasText: 'Connected to relay.example' }).waitFor({ state: 'attached' });
  holdfast.say({ calls: { ...holdfast.snapshot.calls, pending: 3 } });
  await page.getByRole('heading', { name: '3 calls are running' }).waitFor();
  assert.equal(await said.innerText(), 'Connected to relay.example');
  holdfast.say({ questions: asked(now).questions });
  await said.filter({ hasText: 'a call is waiting for your approval' }).waitFor({ state: 'attached' });
});

test('nothing moves for those who ask for less motion', async () => {
  const { page } = await scripted(cut(Date.now()), timeline(Date.now()), { reducedMotion: 'reduce' });
  await heading(page).waitFor();
  const moving = () => page.evaluate('document.getAnimations().filter((a) => a.playState === "running").length');
  await eventually(async () => assert.equal(await moving(), 0));
});
