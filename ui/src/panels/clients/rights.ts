// Scopes in plain words.

import { t } from '../../words/index.ts';

/** `use tools, durable operations, stay signed in`; a scope without words here stands as it is. */
export function rights(scopes: string): string {
  const words = scopes
    .split(/\s+/)
    .filter((scope) => scope !== '')
    .map((scope) => {
      const id = `ui-scope-${scope.replace(/[^A-Za-z0-9]/g, '-')}`;
      const text = t(id);
      return text === id ? scope : text;
    });
  return words.join(', ');
}
