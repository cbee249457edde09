// The channel: from a bot's token to an agent that is mirrored, people who may speak, and what did not get there.

import assert from 'node:assert/strict';
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { Discord } from './support/discord.js';
import { eventually } from './support/moments.js';
import { base, channels, seat } from './support/states.js';
import { suite } from './support/suite.js';
import { fromWindow } from './support/typescript.js';
import { axe, overflow } from './support/window.js';

const { holdfast, scripted } = suite();
const region = (page, name) => page.getByRole('region', { name, exact: true });
const S = 1_000;

const BINDING = {
  name: 'app', channel: '1200300400500600700', transcript: null, session: null, project: '/home/ann/app', deliver: 'tmux', command: [],
  pane: 'work:0.1', stop_key: null, mention: false, people: [],
};
const CHANNEL = {
  backend: 'discord', bot: '7000001', on_start: 'if-vacant', base_url: null, gateway_url: null, people: ['81'], direct: null, voice: [],
  binding: [BINDING],
};

/** A process whose configuration is `channel`, on its channel's tab: `{process, page, asked}`. */
async function onChannel(change = {}, channel = CHANNEL, pageOptions = {}) {
  const now = Date.now();
  const { holdfast: process, page } = await scripted(base(now, { seat: seat(now, { backend: 'discord' }), ...change }), [], pageOptions);
  const kept = { channel: structuredClone(channel) };
  process.answers['/api/config'] = () => ({ path: '/c.toml', valid: true, error: null, config: kept, set: {} });
  process.answers.channel_candidates = [
    { path: '/home/ann/.claude/projects/-home-ann-app/s-1.jsonl', agent: 'Claude Code', session: 's-1', project: '/home/ann/app', live: true, modified: now - 5 * S },
    { path: '/home/ann/.codex/sessions/rollout-2.jsonl', agent: 'Codex', session: 's-2', project: '/home/ann/site', live: false, modified: now - 500 * S },
  ];
  process.answers.channel_check = { version: '0.1.0', platform: 'linux', ok: true, checks: [] };
  await page.getByRole('navigation').getByRole('link', { name: 'Channel', exact: true }).click();
  const asked = (command) => process.asked.filter(({ body }) => body?.command === command).map(({ body }) => body);
  return { process, page, asked, kept };
}

test('a bot is set up with a token that stays nowhere in the window, and its removal is asked about', async () => {
  const none = { ...CHANNEL, backend: null, bot: null, binding: [], people: [] };
  const { process, page, asked, kept } = await onChannel({ seat: null }, none);
  process.answers.channel_setup = () => {
    kept.channel = { ...none, backend: 'discord', bot: '7000001' };
    return { bot: '7000001' };
  };
  process.answers.channel_remove = () => {
    kept.channel = none;
    return { done: true };
  };
  await page.getByText('switch on “Message Content Intent”').waitFor();
  await page.getByLabel('Token of the bot').fill('MTIz.secret.token');
  await page.getByRole('button', { name: 'Set up' }).click();
  await page.getByText('discord bot 7000001').waitFor();
  assert.deepEqual(asked('channel_setup'), [{ command: 'channel_setup', token: 'MTIz.secret.token' }]);
  await eventually(async () => assert.ok(!(await page.content()).includes('secret.token')));
  await region(page, 'Bot').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog', { name: 'Remove the bot?' }).getByRole('button', { name: 'Remove' }).click();
  await page.getByLabel('Token of the bot').waitFor();
  await eventually(async () => assert.equal(await page.getByLabel('Token of the bot').inputValue(), ''));
});

test('a token that is refused is said at its field', async () => {
  const { process, page } = await onChannel({ seat: null }, { ...CHANNEL, backend: null });
  process.answers.channel_setup = () => {
    throw { status: 409, code: 'token_refused', message: 'Discord does not know this token' };
  };
  await page.getByLabel('Token of the bot').fill('a.b.c');
  await page.getByRole('button', { name: 'Set up' }).click();
  await page.getByText('Discord does not know this token.').waitFor();
});

test('the first agent is bound: the folder of the likeliest one stands there already', async () => {
  const { process, page, asked, kept } = await onChannel({}, { ...CHANNEL, binding: [] });
  process.answers.channel_bind = ({ name, set }) => {
    kept.channel = { ...kept.channel, binding: [{ ...BINDING, ...set, name }] };
    return { binding: name };
  };
  const form = page.getByRole('form', { name: 'Mirror the agent' });
  await page.waitForFunction(() => [...document.querySelectorAll('input')].some(({ value }) => value === '/home/ann/app'));
  await form.getByLabel('Name').fill('app');
  await form.getByLabel('Channel ID').fill('1200300400500600700');
  await form.getByLabel('How your messages reach the agent').selectOption('command');
  await form.getByLabel('Program and arguments').fill('claude -p "two words" --resume {session}');
  await form.getByRole('button', { name: 'Mirror the agent' }).click();
  await page.getByText('the newest session of /home/ann/app').waitFor();
  assert.deepEqual(asked('channel_bind'), [
    {
      command: 'channel_bind', name: 'app',
      set: {
        channel: '1200300400500600700', project: '/home/ann/app', transcript: null, session: null, deliver: 'command',
        command: ['claude', '-p', 'two words', '--resume', '{session}'], pane: null, stop_key: null, mention: false,
      },
    },
  ]);
});

test('the transcript of a binding is changed to one that was found, and what is refused stays to be mended', async () => {
  const { process, page, asked } = await onChannel({ channels: channels() });
  await page.getByRole('button', { name: 'Change app' }).click();
  const form = page.getByRole('form', { name: 'Change app' });
  await form.getByLabel('One transcript').check();
  await form.getByLabel('Codex · /home/ann/site').check();
  process.answers.channel_bind = () => {
    throw { status: 409, code: 'invalid_request', message: 'transcript = "x": name it from the root on' };
  };
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByRole('alert').filter({ hasText: 'name it from the root on' }).waitFor();
  const warning = 'messages cannot be delivered yet: there is no pane work:0.1';
  process.answers.channel_bind = { binding: 'app', warnings: [{ code: 'pane_missing', text: warning }] };
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  const agents = region(page, 'Agents and their channels');
  await agents.getByText(warning, { exact: true }).waitFor();
  for (const text of ['#agent-log in Workshop', '1200300400500600700']) await agents.getByText(text, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Change app' }).click();
  await agents.getByText(warning, { exact: true }).waitFor({ state: 'detached' });
  assert.deepEqual(asked('channel_bind').at(-1).set, { project: null, transcript: '/home/ann/.codex/sessions/rollout-2.jsonl' });
});

test('saving one field of a binding leaves the session it is pinned to, and every other key, alone', async () => {
  const pinned = { ...BINDING, session: 's-1', project: null, deliver: 'command', command: ['say', `it's "x"`, '--at=a b', ''], pane: null };
  const { process, page, asked } = await onChannel({ channels: channels() }, { ...CHANNEL, binding: [pinned] });
  process.answers.channel_bind = { binding: 'app' };
  await page.getByRole('button', { name: 'Change app' }).click();
  const form = page.getByRole('form', { name: 'Change app' });
  await form.getByLabel('Channel ID').fill('1200300400500600701');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  assert.deepEqual(asked('channel_bind'), [{ command: 'channel_bind', name: 'app', set: { channel: '1200300400500600701' } }]);
});

test('a command line is the words it was made of', async () => {
  const { lineOf, wordsOf } = await fromWindow('panels/channel/argv.ts');
  const words = ['claude', '-p', 'two words', '', `it's`, 'say "x"', `it's "x"`, '"\'"', '--at=a b', 'C:\\bin\\x', '{session}'];
  assert.deepEqual(wordsOf(lineOf(words)), words);
  for (const word of words) assert.deepEqual(wordsOf(lineOf([word])), [word], word);
  assert.deepEqual(wordsOf(`claude --at="a b" 'c "d"' "e`), ['claude', '--at=a b', 'c "d"', '"e']);
  assert.deepEqual(wordsOf('  '), []);
});

test('a test message is posted and named, and a refusal says what to do', async () => {
  const { process, page, asked } = await onChannel({ channels: channels() });
  process.answers.channel_test = { message: '1200300400500600799' };
  await page.getByRole('button', { name: 'Test message app' }).click();
  await page.getByText('Test message posted (id 1200300400500600799).').waitFor();
  assert.deepEqual(asked('channel_test'), [{ command: 'channel_test', binding: 'app' }]);
  process.answers.channel_test = () => {
    throw { status: 409, code: 'no_seat', message: 'no seat' };
  };
  await page.getByRole('button', { name: 'Test message app' }).click();
  await page.getByRole('alert').filter({ hasText: 'This machine is not running the bot. Take the seat first.' }).waitFor();
});

test('retrying the refused messages, and what may be there already only after a question', async () => {
  const { page, asked } = await onChannel({ channels: channels() });
  const troubles = region(page, 'Messages that were not posted');
  await troubles.getByText('All 212 tests pass.').waitFor();
  await troubles.getByText('the connection ended before Discord answered').waitFor();
  await troubles.getByRole('button', { name: 'Try again' }).click();
  await troubles.getByRole('button', { name: 'Send unknown ones again' }).click();
  const dialog = page.getByRole('dialog', { name: 'Send them again?' });
  await dialog.getByText('would then appear twice').waitFor();
  await dialog.getByRole('button', { name: 'Send unknown ones again' }).click();
  await dialog.waitFor({ state: 'detached' });
  const tried = [{ command: 'channel_retry' }, { command: 'channel_retry', unknown: true }];
  await eventually(() => assert.deepEqual(asked('channel_retry'), tried));
});

test('somebody is let in by the code the bot told them, and dismissed again', async () => {
  const { process, page, asked, kept } = await onChannel({ channels: channels({ pairing_until: null }) });
  const people = region(page, 'People who may talk to the agents');
  await people.getByRole('button', { name: 'Remove Ann' }).waitFor();
  process.answers.channel_pair = ({ code }) => {
    if (code === undefined) {
      process.say({ channels: channels({ pairing_until: Date.now() + 600 * S }) });
      return { minutes: 10 };
    }
    if (code !== '7KQ2MX') throw { status: 409, code: 'wrong_code', message: 'nobody’s' };
    kept.channel = { ...kept.channel, people: ['81', '82'] };
    process.say({ channels: channels({ people: [{ id: '81', name: 'Ann' }, { id: '82', name: 'Ben' }] }) });
    return { person: '82', name: 'Ben' };
  };
  await people.getByRole('button', { name: 'Add somebody' }).click();
  await people.getByText('left').waitFor();
  await people.getByLabel('The code the bot sent them').fill('AAAAAA');
  await people.getByRole('button', { name: 'Allow' }).click();
  await people.getByText('Wrong code. After five wrong codes pairing closes.').waitFor();
  await people.getByLabel('The code the bot sent them').fill('7KQ2MX');
  await people.getByRole('button', { name: 'Allow' }).click();
  await people.getByRole('alert').filter({ hasText: 'Ben may talk to the agents.' }).waitFor();
  await people.getByRole('button', { name: 'Remove Ben' }).click();
  await page.getByRole('dialog', { name: 'Remove Ben?' }).getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.deepEqual(asked('channel_dismiss'), [{ command: 'channel_dismiss', person: '82' }]);
});

test('the service is asked by itself until a message came through, and when somebody asks', async () => {
  const { process, page, asked } = await onChannel({}, { ...CHANNEL, binding: [] });
  const checks = region(page, 'Bot checks');
  await checks.getByText('The bot can read and post.').waitFor();
  process.answers.channel_check = {
    version: '0.1.0', platform: 'linux', ok: false,
    checks: [
      { name: 'bot', state: 'ok', found: 'the token belongs to @forge' },
      { name: 'message text', state: 'failed', found: 'the message content intent is off', advice: 'switch it on' },
    ],
  };
  await checks.getByRole('button', { name: 'Check again' }).click();
  await checks.getByText('Something keeps the bot from reading or posting.').waitFor();
  await checks.getByText('the message content intent is off').waitFor();
  assert.equal(asked('channel_check').length, 2);
});

test('where messages came through nothing is asked by itself', async () => {
  const { page, asked } = await onChannel({ channels: channels() });
  await region(page, 'Bot checks').getByRole('button', { name: 'Check now' }).waitFor();
  assert.equal(asked('channel_check').length, 0);
});

test('the seat is shown with all that is known of it', async () => {
  const now = Date.now();
  const held = seat(now, { transcript: '/home/ann/.claude/projects/x.jsonl', waiting: 2 });
  const { page } = await onChannel({ seat: held });
  const details = region(page, 'Seat');
  for (const text of ['Runs the bot', '7000001 at telegram', 'This app, on workshop (process 4242)', 'i-1', held.transcript]) {
    await details.getByText(text, { exact: true }).waitFor();
  }
});

test('the first screen says in one line what does not get there', async () => {
  const { page } = await onChannel({ channels: channels() });
  await page.getByRole('link', { name: 'Now', exact: true }).click();
  const line = 'Channel: 1 channel blocked, 1 message refused, 1 message of unknown outcome, 3 messages to be posted, 1 message to be delivered';
  await page.getByText(line).waitFor();
  await page.getByText(line).locator('..').getByRole('link', { name: 'Show' }).click();
  await region(page, 'Agents and their channels').waitFor();
});

test('the filled channel has no finding of axe in light and in dark, and fits into 420 pixels', async () => {
  for (const options of [{ colorScheme: 'light', viewport: { width: 420, height: 800 } }, { colorScheme: 'dark' }]) {
    const { process, page } = await onChannel({ channels: channels({ stuck: 'the disk is full' }) }, CHANNEL, options);
    process.answers.channel_check = { version: '0', platform: 'x', ok: true, checks: [{ name: 'channel app', state: 'ok', found: '#agent-log: the bot may read and write' }] };
    await page.getByRole('button', { name: 'Check now' }).click();
    await page.getByText('The bot can read and post.').waitFor();
    await page.getByRole('button', { name: 'Another agent' }).click();
    await page.getByLabel('One transcript').check();
    await page.getByLabel('How your messages reach the agent').selectOption('tmux');
    assert.deepEqual(await axe(page), [], options.colorScheme);
    assert.ok((await overflow(page)) <= 0, options.colorScheme);
    assert.deepEqual(page.complaints, []);
  }
});

test('from a token to an agent that is mirrored, and back: the real thing', async (t) => {
  const discord = await Discord.start();
  t.after(() => discord.stop());
  const { home, page } = await holdfast({ config: `[channel]\nbase_url = "${discord.url}"\n` });
  const transcripts = join(home.root, '.claude', 'projects', 'app');
  const transcript = join(transcripts, 's-1.jsonl');
  await mkdir(transcripts, { recursive: true });
  await writeFile(transcript, '');
  await home.run('channel', 'show').catch(({ stderr }) => assert.match(stderr, /no channel is set up/));
  await page.getByRole('navigation').getByRole('link', { name: 'Channel', exact: true }).click();
  await page.getByLabel('Token of the bot').fill(discord.token);
  await page.getByRole('button', { name: 'Set up' }).click();
  await page.getByText(`discord bot ${discord.bot}`).waitFor();
  await page.getByText('the token belongs to').waitFor();
  await page.getByText('oauth2/authorize').waitFor();

  const form = page.getByRole('form', { name: 'Mirror the agent' });
  await form.getByLabel('Name').fill('app');
  await form.getByLabel('Channel ID').fill(discord.channel);
  await form.getByLabel('One transcript').check();
  await form.getByLabel('Path of the transcript').fill(transcript);
  await form.getByLabel('How your messages reach the agent').selectOption('inbox');
  await form.getByRole('button', { name: 'Mirror the agent' }).click();
  await page.getByText(`#channel-${discord.channel} in Workshop: the bot may read and write`).waitFor();
  await region(page, 'Seat').getByText('Runs the bot').waitFor();

  await page.getByRole('button', { name: 'Test message app' }).click();
  await page.getByText(/Test message posted \(id \d+\)\./).waitFor();

  // What an agent wrote before is not posted.
  await eventually(async () => {
    const { channels } = await (await home.api('GET', '/api/status')).json();
    assert.ok(channels.bindings[0].transcript);
  });
  const said = { type: 'text', text: 'All 212 tests pass.' };
  const line = { type: 'assistant', sessionId: 's-1', uuid: 'u-1', timestamp: new Date().toISOString(), message: { role: 'assistant', content: [said] } };
  await appendFile(transcript, `${JSON.stringify(line)}\n`);
  await discord.posted('All 212 tests pass.');
  await page.getByText(/last posted/).waitFor();

  const people = region(page, 'People who may talk to the agents');
  await people.getByRole('button', { name: 'Add somebody' }).click();
  await people.getByLabel('The code the bot sent them').waitFor();
  await discord.write(`<@${discord.bot}> hello`);
  const { text } = await discord.posted('code');
  const [code] = /\b[2-9A-HJ-NP-Z]{6}\b/.exec(text);
  await people.getByLabel('The code the bot sent them').fill(code);
  await people.getByRole('button', { name: 'Allow' }).click();
  await people.getByRole('alert').filter({ hasText: 'Ann may talk to the agents.' }).waitFor();
  assert.match(await home.run('channel', 'people'), new RegExp(`Ann +${discord.person}`));
  await discord.write('please go on');
  await page.getByText('1 message to be delivered').waitFor();

  await discord.ask({ do: 'silence', channel: discord.channel, silent: true });
  await appendFile(transcript, `${JSON.stringify({ ...line, uuid: 'u-2', message: { ...line.message, content: [{ type: 'text', text: 'One more.' }] } })}\n`);
  await page.getByText('blocked by the service').waitFor();
  await page.getByRole('button', { name: 'Check now' }).or(page.getByRole('button', { name: 'Check again' })).click();
  await page.getByText('the bot lacks Send Messages').waitFor();
  await discord.ask({ do: 'silence', channel: discord.channel, silent: false });
  await home.run('channel', 'retry', 'app');
  await discord.posted('One more.');
  assert.deepEqual(page.complaints, []);
});
