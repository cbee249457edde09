// Times as people say them. Durations are in milliseconds, moments in milliseconds since 1970.

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `8 ms`, `3.2 s`, `1 min 48 s`, `2 h 5 min`, `3 d 4 h`: at most two units, rounded down. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * SECOND) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  return long(ms);
}

/** The same without fractions: for what counts in front of somebody's eyes. */
export function counted(ms: number): string {
  return ms < SECOND ? '0 s' : long(ms);
}

function long(ms: number): string {
  const two = (big: number, unit: string, small: number, rest: string) =>
    small === 0 ? `${big} ${unit}` : `${big} ${unit} ${small} ${rest}`;
  const whole = (unit: number) => Math.floor(ms / unit);
  if (ms < MINUTE) return `${whole(SECOND)} s`;
  if (ms < HOUR) return two(whole(MINUTE), 'min', whole(SECOND) % 60, 's');
  if (ms < DAY) return two(whole(HOUR), 'h', whole(MINUTE) % 60, 'min');
  return two(whole(DAY), 'd', whole(HOUR) % 24, 'h');
}

/** Time that is left: rounded up, so that it says `1 s` until it is over. */
export function left(until: number, now: number): string {
  return counted(Math.ceil(Math.max(0, until - now) / SECOND) * SECOND);
}

const clockFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const minuteFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** `14:31:07`, in this machine's time. */
export const clock = (at: number): string => clockFormat.format(at);

/** `14:31`, and the day where it is not today's: `yesterday 14:31`, `28 Nov 14:31`. */
export function moment(at: number, now: number): string {
  const day = (ms: number) => new Date(ms).toDateString();
  if (day(at) === day(now)) return minuteFormat.format(at);
  const date = day(at) === day(now - DAY) ? 'yesterday' : dayFormat.format(at);
  return `${date} ${minuteFormat.format(at)}`;
}
