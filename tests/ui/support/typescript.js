// A module of the window, without the window: one that imports nothing but types.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const UI = new URL('../../../ui/', import.meta.url);

export async function fromWindow(path) {
  const typescript = createRequire(new URL('package.json', UI))('typescript');
  const { outputText } = typescript.transpileModule(readFileSync(new URL(`src/${path}`, UI), 'utf8'), {
    compilerOptions: { module: typescript.ModuleKind.ESNext, target: typescript.ScriptTarget.ES2022 },
  });
  return import(`data:text/javascript,${encodeURIComponent(outputText)}`);
}
