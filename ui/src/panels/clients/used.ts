// When something was last used.

import { clock } from '../../state/clock.svelte.ts';
import { t } from '../../words/index.ts';
import { moment } from '../../words/time.ts';

/** `, last used yesterday 14:31`; `, never used`. `at` in seconds, as the relay tells it. */
export function used(at: number | null): string {
  return at === null ? t('ui-used-never') : t('ui-used', { when: moment(at * 1_000, clock.now) });
}

/** When any of a client's grants was last used. */
export function lastUsed(grants: { last_used: number | null }[]): number | null {
  return grants.reduce<number | null>((latest, { last_used: at }) => Math.max(latest ?? 0, at ?? 0) || null, null);
}
