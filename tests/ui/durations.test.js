// The window says durations as Rust does: locale/durations.json holds both to it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { fromWindow } from './support/typescript.js';

test('durations are said as the tray and the notices say them', async () => {
  const { counted } = await fromWindow('words/time.ts');
  const cases = JSON.parse(readFileSync(new URL('../../locale/durations.json', import.meta.url), 'utf8'));
  assert.ok(cases.length > 10);
  for (const [ms, said] of cases) assert.equal(counted(ms), said, `${ms} ms`);
});
