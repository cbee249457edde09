// A command line as a list of words, and back. Quotes keep together what stands in them, wherever in a word they stand; nothing else is
// special, because no shell runs it.

const WORD = /(?:"[^"]*"|'[^']*'|\S)+/g;
const PIECE = /"([^"]*)"|'([^']*)'|(\S)/g;

export function wordsOf(text: string): string[] {
  const piece = ([, double, single, bare]: RegExpMatchArray) => double ?? single ?? bare ?? '';
  return [...text.matchAll(WORD)].map(([word]) => [...word.matchAll(PIECE)].map(piece).join(''));
}

export function lineOf(words: readonly string[]): string {
  return words.map(quoted).join(' ');
}

function quoted(word: string): string {
  if (/^[^\s"']+$/.test(word)) return word;
  if (!word.includes('"')) return `"${word}"`;
  const runs = word.includes("'") ? (word.match(/"+|[^"]+/g) ?? []) : [word];
  return runs.map((run) => (run.includes('"') ? `'${run}'` : `"${run}"`)).join('');
}
