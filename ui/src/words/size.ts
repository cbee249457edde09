// Amounts of bytes as people say them.

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `0 B`, `812 B`, `3.2 MB`: powers of 1 000, one digit after the point below ten. */
export function size(bytes: number): string {
  let unit = 0;
  let amount = bytes;
  while (amount >= 999.5 && unit < UNITS.length - 1) {
    amount /= 1_000;
    unit += 1;
  }
  return `${unit > 0 && amount < 9.95 ? amount.toFixed(1) : Math.round(amount)} ${UNITS[unit]}`;
}
