import { FluentBundle, FluentResource, type FluentVariable } from '@fluent/bundle';

import text from '../../../locale/en.ftl?raw';

const bundle = new FluentBundle('en', { useIsolating: false });
bundle.addResource(new FluentResource(text));

/** The text of a message of `locale/en.ftl`. A missing one shows its id, which tests look for. */
export function t(id: string, args?: Record<string, FluentVariable>): string {
  const pattern = bundle.getMessage(id)?.value;
  return pattern == null ? id : bundle.formatPattern(pattern, args ?? null, []);
}
