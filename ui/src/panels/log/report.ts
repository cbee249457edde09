// The doctor's report as `holdfast doctor` prints it, to be read and pasted.

import type { Report } from '../../api/types.ts';

const MARKS = { ok: 'ok  ', warning: 'warn', failed: 'FAIL', skipped: '-   ' };

export function reportText(report: Report): string {
  const width = Math.max(0, ...report.checks.map((check) => check.name.length));
  const lines = report.checks.flatMap(({ name, state, found, advice }) => [
    `${MARKS[state]}  ${name.padEnd(width)}  ${found}`,
    ...(advice ? [`      ${''.padEnd(width)}  → ${advice}`] : []),
  ]);
  return [`holdfast ${report.version} on ${report.platform}`, ...lines, ''].join('\n');
}
