// The window says durations as Rust does: locale/durations.json holds both to it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const top = new URL('../../', import.meta.url);
const read = (path) => readFileSync(new URL(path, top), 'utf8');

test('durations are said as the tray and the notices say them', async () => {
  const typescript = createRequire(new URL('ui/package.json', top))('typescript');
  const { outputText } = typescript.transpileModule(read('ui/src/words/time.ts'), {
    compilerOptions: { module: typescript.ModuleKind.ESNext, target: typescript.ScriptTarget.ES2022 },
  });
  const { counted } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
  const cases = JSON.parse(read('locale/durations.json'));
  assert.ok(cases.length > 10);
  for (const [ms, said] of cases) assert.equal(counted(ms), said, `${ms} ms`);
});
