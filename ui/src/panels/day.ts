// Days, for what lasts longer than a clock shows. Moments are in seconds since 1970, as the relay's store has them.

const format = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/** `28 Nov 2026`. */
export const day = (seconds: number): string => format.format(seconds * 1_000);
