// A binding as somebody types it: from the configuration, and to what changes there.

import type { BindingConfig, Delivery } from '../../api/types.ts';
import { lineOf, wordsOf } from './argv.ts';

/** What is followed: the newest session of a folder, or one transcript. */
export type Followed = 'project' | 'transcript';

export interface Draft {
  name: string;
  channel: string;
  follow: Followed;
  project: string;
  transcript: string;
  deliver: Delivery | 'none';
  command: string;
  pane: string;
  mention: boolean;
}

export function draftOf(binding: BindingConfig | null): Draft {
  return {
    name: binding?.name ?? '',
    channel: binding?.channel ?? '',
    follow: binding !== null && binding.transcript !== null ? 'transcript' : 'project',
    project: binding?.project ?? '',
    transcript: binding?.transcript ?? '',
    deliver: binding?.deliver ?? 'none',
    command: lineOf(binding?.command ?? []),
    pane: binding?.pane ?? '',
    mention: binding?.mention ?? false,
  };
}

/** Keys of the binding that change: all of a new one. Null takes one away, so that nothing of another choice stays. */
export function settingsOf(draft: Draft, binding: BindingConfig | null): Record<string, unknown> {
  const wanted = keysOf(draft);
  if (binding === null) return { ...wanted, session: null };
  const before = keysOf(draftOf(binding));
  const changed = Object.entries(wanted).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key]));
  const set = Object.fromEntries(changed);
  // A session is pinned elsewhere: it stays until something else is followed.
  return binding.session !== null && ('project' in set || 'transcript' in set) ? { ...set, session: null } : set;
}

function keysOf(draft: Draft): Record<string, unknown> {
  const text = (wanted: boolean, value: string) => (wanted && value.trim() !== '' ? value.trim() : null);
  const only = (deliver: Delivery) => draft.deliver === deliver;
  return {
    channel: draft.channel.trim(),
    project: text(draft.follow === 'project', draft.project),
    transcript: text(draft.follow === 'transcript', draft.transcript),
    deliver: draft.deliver === 'none' ? null : draft.deliver,
    command: only('command') ? wordsOf(draft.command) : null,
    pane: text(only('tmux'), draft.pane),
    ...(only('tmux') ? {} : { stop_key: null }),
    mention: draft.mention,
  };
}
