// A command line as a list of words, and back. Quotes keep words together; nothing else is special, because no shell runs it.

export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const [, double, single, bare] of text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)) {
    words.push(double ?? single ?? bare ?? '');
  }
  return words;
}

export function lineOf(words: readonly string[]): string {
  return words.map((word) => (/^[^\s"']+$/.test(word) ? word : word.includes('"') ? `'${word}'` : `"${word}"`)).join(' ');
}
