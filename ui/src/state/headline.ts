// The sentence at the top: is this machine reachable, is anything waiting? As ids of messages, so that it can be tested
// without the texts.

import type { LinkState, StatusSnapshot, Warning } from '../api/types.ts';

export type Tone = 'ok' | 'wait' | 'bad' | 'off';
export interface Part {
  id: string;
  args: Record<string, string | number>;
}

const TONES: Record<LinkState, Tone> = {
  stopped: 'off',
  connecting: 'wait',
  healthy: 'ok',
  blip: 'wait',
  outage: 'wait',
  recovering: 'wait',
  sign_in_needed: 'bad',
  incompatible: 'bad',
};

/** `partly`: some run, and one that the machine is reached through does not, as after *Cut all access*. */
export function engines({ app }: StatusSnapshot): 'running' | 'partly' | 'stopping' | 'stopped' {
  const states = Object.values(app.engines);
  if (states.includes('stopping')) return 'stopping';
  if (!states.includes('running')) return 'stopped';
  const way = [app.engines.link, app.engines.relay];
  return way.some((state) => state !== undefined && state !== 'running') ? 'partly' : 'running';
}

export function worst(snapshot: StatusSnapshot): Warning | undefined {
  return snapshot.health[0];
}

export function tone(snapshot: StatusSnapshot, now: number): Tone {
  if (worst(snapshot)?.severity === 'needs_you' || asksPerson(snapshot, now)) return 'bad';
  return TONES[snapshot.relay.state];
}

export function asksPerson(snapshot: StatusSnapshot, now: number): boolean {
  const { questions, consents } = asks(snapshot, now);
  return questions.length + consents.length > 0;
}

/** What a person is asked and can still answer; the tray counts the same. */
export function asks({ questions, consents }: StatusSnapshot, now: number): Pick<StatusSnapshot, 'questions' | 'consents'> {
  const open = ({ expires_at }: { expires_at: number }) => expires_at > now;
  return { questions: questions.filter(open), consents: consents.filter(open) };
}

/** The relay's host; empty for the one inside this process or on this machine. */
export function relayName(snapshot: StatusSnapshot): string {
  const { url } = snapshot.relay;
  if (snapshot.app.engines.relay !== undefined || url === null || !URL.canParse(url)) return '';
  const { hostname, host } = new URL(url);
  return /^(127\.|localhost$|\[::1\])/.test(hostname) ? '' : host;
}

/** First whether it is reachable, then what waits. */
export function headline(snapshot: StatusSnapshot, now: number): [Part, Part | null] {
  const relay = relayName(snapshot);
  const state = snapshot.relay.state === 'stopped' ? stopped(snapshot) : snapshot.relay.state;
  const link = { id: `ui-head-${state.replaceAll('_', '-')}${relay === '' ? '-here' : ''}`, args: { relay } };
  return [link, work(snapshot, now)];
}

function stopped(snapshot: StatusSnapshot): string {
  if (Object.values(snapshot.app.engines).includes('stopping')) return 'stopping';
  return snapshot.health.some((w) => w.code === 'start_failed') ? 'start-failed' : 'stopped';
}

function work(snapshot: StatusSnapshot, now: number): Part | null {
  const { calls, relay, health } = snapshot;
  const { questions, consents } = asks(snapshot, now);
  const waiting = calls.detached + calls.queued_results;
  if (questions[0]) return { id: 'ui-head-question', args: { client: questions[0].client ?? '', count: questions.length } };
  if (consents[0]) return { id: 'ui-head-consent', args: { client: consents[0].client, count: consents.length } };
  const away = relay.state !== 'healthy' && relay.state !== 'stopped';
  if (away && waiting > 0) {
    const lost = health.some((w) => w.code === 'calls_lost');
    return { id: lost ? 'ui-head-waiting' : 'ui-head-waiting-safe', args: { count: waiting } };
  }
  if (calls.pending > 0) return { id: 'ui-head-running', args: { count: calls.pending } };
  if (calls.queued_results > 0) return { id: 'ui-head-queued', args: { count: calls.queued_results } };
  return relay.state === 'stopped' ? null : { id: 'ui-head-idle', args: {} };
}
