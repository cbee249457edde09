// Several pages of one browser, which has six connections for all of them, and answers that do not come.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from './support/moments.js';
import { asked, base } from './support/states.js';
import { suite } from './support/suite.js';

const { scripted, opened } = suite();
const heading = (page, name) => page.getByRole('heading', { level: 1, name });
const READY = 'Connected to relay.example — nothing is waiting';
const NEVER = () => new Promise(() => {});
const SECOND = 1_000;
/** A request with this command, and not one that lists something meanwhile. */
const commands = (command) => (request) => request.postData()?.includes(`"command":"${command}"`) ?? false;

/** As if the tab were left for another, or come back to. */
const hide = (page, hidden) =>
  page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);

/** A page whose time a test turns: it stands still from when `still` is called. */
async function timed(snapshot) {
  const { holdfast, page } = await scripted(snapshot, []);
  const context = page.context();
  const later = await context.newPage();
  await page.close();
  await later.clock.install();
  // Time cannot be turned back: on a busy machine the page may be past that moment already, and then a later one is tried.
  const still = () => eventually(() => later.clock.pauseAt(Date.now() + SECOND));
  return { holdfast, page: later, still };
}

test('a page that is hidden holds no connection, and shows what is true when it is seen again', async () => {
  const { holdfast, page } = await scripted(base(Date.now()), []);
  await heading(page, READY).waitFor();
  await holdfast.followers(2);
  await hide(page, true);
  await holdfast.followers(0);
  holdfast.say({ calls: { ...holdfast.snapshot.calls, pending: 3 } });
  assert.equal(await heading(page, READY).count(), 1);
  await hide(page, false);
  await heading(page, 'Connected to relay.example — 3 calls are running').waitFor();
  await holdfast.followers(2);
  assert.equal(await page.getByText('is not responding').count(), 0);
});

test('with four pages of one browser open, a button of the one that is seen does its deed', async () => {
  const { holdfast, page } = await scripted(base(Date.now()), []);
  await heading(page, READY).waitFor();
  let seen = page;
  for (let more = 0; more < 3; more += 1) {
    await hide(seen, true);
    seen = await page.context().newPage();
    await seen.goto(holdfast.url());
    await heading(seen, READY).waitFor();
  }
  await seen.getByRole('button', { name: 'Stop' }).click();
  await holdfast.lastAsked({ command: 'stop' });
});

test('an Allow without an answer is given up after ten seconds, and says so', async () => {
  const { holdfast, page, still } = await timed(asked(Date.now()));
  holdfast.answers.answer = NEVER;
  await page.goto(holdfast.url());
  await page.getByRole('button', { name: 'Allow' }).waitFor();
  await still();
  const request = page.waitForRequest(commands('answer'));
  await page.getByRole('button', { name: 'Allow' }).click();
  const given = page.waitForEvent('requestfailed', commands('answer'));
  await request;
  await page.clock.runFor(9 * SECOND);
  assert.equal(await page.getByText('did not respond in time').count(), 0);
  await page.clock.runFor(2 * SECOND);
  await given;
  await page.getByRole('alert').getByText('Holdfast did not respond in time.').waitFor();
});

test('a Stop is waited for as long as stopping may take', async () => {
  const { holdfast, page, still } = await timed(base(Date.now()));
  holdfast.answers.stop = NEVER;
  await page.goto(holdfast.url());
  await heading(page, READY).waitFor();
  await still();
  const request = page.waitForRequest(commands('stop'));
  await page.getByRole('button', { name: 'Stop' }).click();
  await request;
  // What is heard keeps the streams open meanwhile.
  for (let second = 10; second <= 50; second += 10) {
    holdfast.say({ calls: { ...holdfast.snapshot.calls, pending: second } });
    await heading(page, `Connected to relay.example — ${second} calls are running`).waitFor();
    await page.clock.runFor(10 * SECOND);
  }
  assert.equal(await page.getByText('did not respond in time').count(), 0);
  await page.clock.runFor(5 * SECOND);
  await page.getByRole('alert').getByText('did not respond in time').waitFor();
});

test('a session that is not answered is told, with what may be the cause', async () => {
  const { holdfast, page } = await timed(base(Date.now()));
  holdfast.sessions = NEVER;
  await page.goto(holdfast.url());
  await page.clock.runFor(11 * SECOND);
  await page.getByText('Holdfast is not responding yet; retrying.').waitFor();
  await page.getByText('If this page is open in several tabs, close some').waitFor();
});
