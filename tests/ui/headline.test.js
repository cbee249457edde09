// The sentence at the top where it is easily wrong: nobody answers, a part runs, what was asked has lapsed.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from './support/moments.js';
import { asked, base, calm, cut, stopped } from './support/states.js';
import { suite } from './support/suite.js';
import { fromWindow } from './support/typescript.js';
import { axe } from './support/window.js';

const { scripted } = suite();
const { asksPerson, engines, headline, tone } = await fromWindow('state/headline.ts');
const says = (page, name) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
const SILENT = 'Holdfast is not responding';

/** After *Cut all access*: the link is stopped, the relay inside runs. */
const cutOff = (now) => {
  const state = stopped(now);
  return { ...state, app: { ...state.app, engines: { link: 'stopped', relay: 'running' } } };
};

test('a question or a consent counts until it expires, as in the tray', () => {
  const now = Date.now();
  const state = { ...asked(now), health: [] };
  const { questions, consents } = state;
  const at = (late) => [asksPerson(state, late), headline(state, late)[1].id, tone(state, late)];
  assert.deepEqual(at(questions[0].expires_at - 1), [true, 'ui-head-question', 'bad']);
  assert.deepEqual(at(questions[0].expires_at), [true, 'ui-head-consent', 'bad']);
  assert.deepEqual(at(consents[0].expires_at), [false, 'ui-head-running', 'ok']);
});

test('a question that lapsed is not shown any more, although the snapshot still has it', async () => {
  const now = Date.now();
  const state = { ...asked(now), consents: [], health: [] };
  const { page } = await scripted({ ...state, questions: [{ ...state.questions[0], expires_at: now + 2_500 }] }, [], { at: now });
  const question = page.getByRole('region', { name: 'ChatGPT wants to use exec_command' });
  await question.waitFor();
  await page.clock.setFixedTime(now + 2_500);
  await question.waitFor({ state: 'detached' });
  await says(page, 'Connected to relay.example — 1 call is running');
});

test('a process that is gone is not said to be ready: the sentence, the title, the mark and the figures tell it', async () => {
  for (const state of [calm, cut]) {
    const { holdfast, page } = await scripted(state(Date.now()), []);
    await page.getByRole('heading', { level: 1, name: /relay.example/ }).waitFor();
    const { port } = holdfast;
    await holdfast.silence();
    await says(page, SILENT);
    await eventually(async () => assert.equal(await page.title(), `${SILENT} · Holdfast`));
    await page.locator('header svg.off').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).waitFor({ state: 'detached' });
    const facts = page.locator('dl[aria-label="At a glance"]');
    await eventually(async () => assert.match(await facts.innerText(), /^Reachable\s*Unknown\s*last heard \d\d:\d\d\s/));
    await eventually(async () => {
      const colours = await facts.evaluate((dl) => {
        const dim = getComputedStyle(dl.querySelector('dt')).color;
        return [...dl.querySelectorAll('b, b small, p, p span')].filter((node) => getComputedStyle(node).color !== dim).length;
      });
      assert.equal(colours, 0);
    });
    assert.deepEqual(await axe(page), []);
    holdfast.snapshot = base(Date.now());
    await holdfast.listen(port);
    await says(page, 'Connected to relay.example — nothing is waiting');
    await facts.getByText('Yes', { exact: true }).waitFor();
  }
});

test('engines run when the link and the relay do, whatever the channels are', () => {
  const of = (engines_) => engines({ app: { engines: engines_ } });
  assert.equal(of({ link: 'running' }), 'running');
  assert.equal(of({ relay: 'running' }), 'running');
  assert.equal(of({ link: 'running', relay: 'running', channels: 'stopped' }), 'running');
  assert.equal(of({ link: 'stopped', relay: 'running' }), 'partly');
  assert.equal(of({ link: 'stopped', channels: 'running' }), 'partly');
  assert.equal(of({ link: 'running', relay: 'failed' }), 'partly');
  assert.equal(of({ link: 'stopping', relay: 'running' }), 'stopping');
  assert.equal(of({ link: 'stopped', relay: 'stopped' }), 'stopped');
});

test('after all access was cut there is a Start beside the Stop, and the words do not say that nothing runs', async () => {
  const { holdfast, page } = await scripted(cutOff(Date.now()), []);
  await says(page, 'Stopped: this machine cannot be reached');
  await page.getByText('Clients cannot reach this machine until you start it again.').waitFor();
  await page.getByText('the link is stopped').waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await holdfast.lastAsked({ command: 'start' });
});
