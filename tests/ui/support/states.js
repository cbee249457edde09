// Snapshots and timelines of the states that screens are looked at in.

const S = 1_000;
const MIN = 60 * S;
const H = 60 * MIN;

const relay = (now, change = {}) => ({
  state: 'healthy', since: now - 2 * H, attempts: 0, cause: null, next_try_at: null, route: 'direct',
  url: 'wss://relay.example/device', grace_ends_at: null, ...change,
});
const app = (now, change = {}) => ({
  version: '0.1.0', pid: 4242, started_at: now - 5 * H, mcp: 'https://relay.example/mcp', policy: 'workspace_write',
  workspace: '/home/ann/holdfast', autostart: null, engines: { link: 'running' }, ...change,
});
const calls = (change = {}) => ({ pending: 0, detached: 0, queued_results: 0, oldest_ms: null, by_tool: {}, ...change });
const outage = (now, ago, length, change = {}) => ({
  started_at: now - ago, ended_at: length === null ? null : now - ago + length, cause: 'the network changed',
  calls_saved: 0, calls_lost: 0, ...change,
});

const outages = (now) => [
  outage(now, 21 * H, 42 * S, { calls_saved: 3 }),
  outage(now, 16.5 * H, 96 * S, { calls_saved: 8, cause: 'the relay closed the connection: it restarts' }),
  outage(now, 10 * H, 11 * S, { calls_saved: 2 }),
  outage(now, 5.5 * H, 31 * S, { calls_saved: 4, calls_lost: 1, cause: 'no byte came for 25 s' }),
];
export const seat = (now, change = {}) => ({
  state: 'serving', since: now - 29 * MIN, backend: 'telegram', bot: '7000001', generation: 3, channel: '#agent-log',
  holder: { this: true, instance: 'i-1', pid: 4242, host: 'workshop', since: now - 29 * MIN },
  transcript: null, waiting: 0, last_sent: now - 3 * MIN, reason: null, next_try_at: null, frozen: false, waits: false, ...change,
});

export const base = (now, change = {}) => ({
  seq: 1, taken_at: now, app: app(now), relay: relay(now), calls: calls(), worker: null, seat: null, channels: null, consents: [], questions: [],
  outages: [], health: [], ...change,
});

/** An agent whose channel refuses, one message that was refused and one nobody knows the end of, and a person. */
export const channels = (change = {}) => ({
  bindings: [
    {
      name: 'app', channel: '1200300400500600700', channel_name: '#agent-log in Workshop', session: 's-1', adapter: 'tmux',
      transcript: '/home/ann/.claude/projects/-home-ann-app/s-1.jsonl', waiting_in: 1, waiting_out: 3, last_sent: Date.now() - 3 * MIN,
      parked: 'Discord: the bot may not write there', why: null, next_try_at: null, skipped: 4,
    },
  ],
  troubles: [
    { id: 'a', channel: '1200300400500600700', unknown: false, reason: 'the message was refused', text: 'All 212 tests pass.' },
    { id: 'b', channel: '1200300400500600700', unknown: true, reason: 'the connection ended before Discord answered', text: 'Done.' },
  ],
  perhaps: 0, people: [{ id: '81', name: 'Ann' }], pairing_until: Date.now() + 540 * S, in_flight: 0, stuck: null, ...change,
});

const operation = (now, id, change = {}) => ({
  id: `op_${id}`, kind: 'exec', summary: 'cargo test', state: 'running', since: now - 3 * MIN, exit_code: null, behind_bytes: 0,
  stalled_since: null, on_lease_expiry: 'continue', note: null, ...change,
});
export const worker = (now, change = {}) => ({
  state: 'healthy', since: now - 2 * H, cause: null, next_try_at: null,
  lease: { held: true, ends_at: now + 115 * S, renewed: true, generation: 1 },
  counts: { waiting: 0, running: 1, stalled: 0, unknown: 0 },
  behind_bytes: 0, results_waiting: 0, admission_closed: null, operations: [operation(now, 'a')], ...change,
});

/** A worker whose relay is away: a lease that runs out, output and results that wait, an outcome nobody knows. */
export const workerAway = (now) =>
  worker(now, {
    state: 'outage', since: now - 20 * S, cause: 'the network changed', next_try_at: now + 2 * S,
    lease: { held: true, ends_at: now + 100 * S, renewed: false, generation: 2 },
    counts: { waiting: 1, running: 2, stalled: 1, unknown: 1 }, behind_bytes: 3_240_000, results_waiting: 1,
    operations: [
      operation(now, 'a', { behind_bytes: 3_240_000, stalled_since: now - 10 * S, on_lease_expiry: 'stop' }),
      operation(now, 'b', { state: 'received', summary: 'make bench', since: now - 9 * S }),
      operation(now, 'c', { state: 'completed', summary: 'git fetch', exit_code: 0, since: now - 8 * MIN }),
      operation(now, 'd', { state: 'unknown', summary: 'deploy --now', since: now - 9 * MIN, note: 'the machine restarted while it ran' }),
    ],
  });

export const empty = (now) =>
  base(now, {
    app: app(now, { mcp: 'http://127.0.0.1:8787/mcp', started_at: now - 4 * S, engines: { link: 'running', relay: 'running' } }),
    relay: relay(now, { since: now - 3 * S, url: 'ws://127.0.0.1:8787/' }),
  });

export const calm = (now) => base(now, { seat: seat(now), outages: outages(now), calls: calls({ pending: 1, oldest_ms: 4 * S }) });

export const stopped = (now) =>
  base(now, { app: app(now, { engines: { link: 'stopped' } }), relay: relay(now, { state: 'stopped', since: now - MIN }), outages: outages(now) });

export const cut = (now) =>
  base(now, {
    seat: seat(now),
    outages: [...outages(now), outage(now, 12 * S, null)],
    calls: calls({ pending: 2, detached: 2, queued_results: 1, oldest_ms: 34 * S }),
    relay: relay(now, {
      state: 'outage', since: now - 12 * S, attempts: 3, cause: 'the network changed', next_try_at: now + 3.4 * S, grace_ends_at: now + 108 * S,
    }),
    health: [
      { code: 'relay_outage', since: now - 2 * S, severity: 'warning', text: 'The relay has been away for 12 s.', action: 'try_now' },
    ],
  });

export const asked = (now) =>
  base(now, {
    seat: seat(now, { state: 'standby', holder: { this: false, instance: 'i-2', pid: 991, host: 'laptop', since: now - 20 * MIN } }),
    calls: calls({ pending: 1, oldest_ms: 2 * S }),
    questions: [{ id: 'q1', at: now - 2 * S, expires_at: now + 58 * S, client: 'ChatGPT', tool: 'exec_command', summary: 'git push origin main --force-with-lease', text: 'command: git push origin main --force-with-lease', hidden: 0 }],
    consents: [{ client: 'Claude', redirect_host: 'claude.ai', account: 'ann', scopes: 'mcp offline_access', expires_at: now + 4 * MIN }],
    health: [
      { code: 'config_invalid', since: now - MIN, severity: 'needs_you', text: 'config.toml, line 3: unknown key lisen; did you mean listen?', action: 'edit_config' },
      { code: 'disk_low', since: now - MIN, severity: 'warning', text: 'The disk is nearly full: 310 MB are left.' },
    ],
  });

/** Steps of calls in every state. */
export function timeline(now) {
  const steps = [];
  const call = (id, tool, client, summary, at, ...rest) =>
    [['received', 0], ...rest].forEach(([step, after, code]) => {
      const entry = { at: now + at + after, call: `call_${id.padEnd(8, '0')}`, tool, step };
      if (step === 'received') Object.assign(entry, { client, summary });
      steps.push(code ? { ...entry, code } : entry);
    });
  call('a1', 'list_dir', 'Claude Code', 'crates/core/src', -260 * S, ['finished', 4], ['sent', 4], ['delivered', 22]);
  call('a2', 'run_process', 'Codex', 'npm run build', -200 * S, ['finished', 41 * S], ['sent', 41 * S], ['delivered', 41_090]);
  call('a3', 'write_file', 'Codex', '../outside.txt', -120 * S, ['finished', 6, 'path_boundary'], ['sent', 7], ['delivered', 30]);
  call('a4', 'run_process', 'Claude Code', 'sleep 600', -110 * S, ['cancelled', 20 * S]);
  call('a5', 'read_file', 'Claude Code', 'README.md', -69 * S, ['finished', 8], ['sent', 8], ['delivered', 24]);
  call('a6', 'exec_command', 'ChatGPT', 'git push', -56 * S, ['detached', 6 * S], ['rebound', 9 * S], ['finished', 13 * S], ['sent', 13_005], ['delivered', 13_060]);
  call('a7', 'search_text', 'Claude Code', 'fn call_rows', -17 * S, ['detached', 5 * S], ['finished', 6 * S]);
  call('a8', 'run_process', 'ChatGPT', 'cargo test --workspace --all-features', -34 * S, ['detached', 22 * S]);
  return steps.sort((a, b) => a.at - b.at).map((entry, seq) => ({ seq, ...entry }));
}
