// Lines of the log: JSON of the process, made readable.

export const LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type Level = (typeof LEVELS)[number];

export interface Line {
  /** Grows by one with every line of this window. */
  key: number;
  /** Milliseconds since 1970; null for a line that is not the process's. */
  at: number | null;
  level: Level;
  text: string;
  /** The part of the program, without its crate's prefix. */
  from: string;
  /** The line's other fields, as `key=value`. */
  fields: string;
  /** For the search. */
  plain: string;
}

const KNOWN = ['timestamp', 'level', 'message', 'target', 'span', 'spans', 'filename', 'line_number', 'threadName'];

/** A line as it came: the text of one, or the object that stood in it. */
export function lineOf(came: unknown, key: number): Line {
  const object = typeof came === 'string' ? parsed(came) : came;
  if (typeof object !== 'object' || object === null) return asItIs(String(came), key);
  const all = object as Record<string, unknown>;
  const level = String(all.level ?? '').toLowerCase();
  const at = Date.parse(String(all.timestamp));
  const text = String(all.message ?? '');
  const from = String(all.target ?? '').replace(/^holdfast_?/, '').replaceAll('::', ' · ');
  const fields = Object.entries(all)
    .filter(([name]) => !KNOWN.includes(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  return {
    key,
    at: Number.isNaN(at) ? null : at,
    level: LEVELS.find((known) => known === level) ?? (level === 'trace' ? 'debug' : 'info'),
    text,
    from,
    fields,
    plain: `${text} ${from} ${fields}`.toLowerCase(),
  };
}

function asItIs(text: string, key: number): Line {
  return { key, at: null, level: 'info', text, from: '', fields: '', plain: text.toLowerCase() };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Lines with every word of the search. */
export function found(lines: Line[], search: string): Line[] {
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== '');
  return words.length === 0 ? lines : lines.filter((line) => words.every((word) => line.plain.includes(word)));
}
