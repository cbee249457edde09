// Codes as people type them.

const CHARACTERS = 8;

const plain = (typed: string): string => typed.replace(/[\s\-–—_.]/g, '').toUpperCase();

/** The code as it was meant, whatever its case, blanks and dashes; null if it cannot be one (base32, 8 characters). */
export function codeOf(typed: string): string | null {
  const code = plain(typed);
  return code.length === CHARACTERS && /^[A-Z2-7]+$/.test(code) ? code : null;
}

/** `ABCD-EFGH`, if it can be a code; else as it was typed. */
export function shownCode(typed: string): string {
  const code = codeOf(typed);
  return code === null ? typed : inFours(code);
}

/** A longer code in groups that an eye can hold. */
export function inFours(code: string): string {
  return code.replace(/(.{4})(?=.)/g, '$1-');
}
