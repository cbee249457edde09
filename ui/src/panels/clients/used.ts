// When something was last used, where the relay tells.

import { clock } from '../../state/clock.svelte.ts';
import { t } from '../../words/index.ts';
import { moment } from '../../words/time.ts';

/** `, last used yesterday 14:31`; `, never used`; nothing where it is not told. */
export function used(of: object): string {
  const at = 'last_used' in of ? (of.last_used as number | null) : undefined;
  if (at === undefined) return '';
  return at === null ? t('ui-used-never') : t('ui-used', { when: moment(at * 1_000, clock.now) });
}
