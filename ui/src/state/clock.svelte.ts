// One clock for everything that counts. It ticks only while something asks for it and the page can be seen.

const TICK_MS = 1_000;

class Clock {
  #now = $state(Date.now());
  #askers = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor() {
    document.addEventListener('visibilitychange', () => this.#turn());
  }

  /** Milliseconds since 1970, as of the last tick or the last thing that came. */
  get now(): number {
    return this.#now;
  }

  touch(): void {
    this.#now = Date.now();
  }

  /** For an `$effect` of what counts: ticks until the returned function is called. */
  tick(): () => void {
    this.#askers += 1;
    this.#turn();
    return () => {
      this.#askers -= 1;
      this.#turn();
    };
  }

  #turn(): void {
    clearInterval(this.#timer);
    if (this.#askers === 0 || document.hidden) return;
    this.touch();
    this.#timer = setInterval(() => this.touch(), TICK_MS);
  }
}

export const clock = new Clock();
