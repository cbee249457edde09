// The first steps: whether they are shown, and what was done of them. What was done is asked of the process; that
// somebody skipped them, and that a drill passed, is kept by the window, and is no secret.

import type { ClientView, TokenView } from '../../api/types.ts';
import { app } from '../../state/app.svelte.ts';
import { route } from '../../state/route.svelte.ts';
import { Listing } from '../listing.svelte.ts';

const SKIPPED = 'holdfast.first-steps.skipped';
const PASSED = 'holdfast.drill.passed';

class FirstSteps {
  readonly clients = new Listing<ClientView>({ command: 'client_list' });
  readonly tokens = new Listing<TokenView>({ command: 'token_list' });
  #skipped = $state(read(SKIPPED));
  #passed = $state(read(PASSED));
  /** Shown at the start because nobody was ever let in: then they stay until somebody closes them. */
  #began = $state(false);
  #reopened = $state(false);
  #asked = false;

  readonly reachable: boolean = $derived(app.snapshot?.relay.state === 'healthy');
  readonly letIn: boolean = $derived(
    (this.clients.rows?.some((client) => client.grants.length > 0) ?? false) || (this.tokens.rows?.length ?? 0) > 0,
  );
  /** A binding whose channel has had a message. */
  readonly mirrored: boolean = $derived(
    app.snapshot?.channels?.bindings.some(({ last_sent }) => last_sent !== null) ?? false,
  );
  readonly shown: boolean = $derived(this.#reopened || (this.#began && !this.#skipped));

  get passed(): boolean {
    return this.#passed;
  }

  /** Asks once whether they are needed. A relay elsewhere keeps its own lists, and has been set up by somebody. */
  begin = async (): Promise<void> => {
    if (this.#skipped || this.#asked) return;
    this.#asked = true;
    await Promise.all([this.clients.load(), this.tokens.load()]);
    this.#began = this.clients.rows !== null && this.tokens.rows !== null && !this.letIn;
  };

  /** For an `$effect` of what shows them. */
  follow = (): (() => void) => {
    const ends = [this.clients.follow(), this.tokens.follow()];
    return () => ends.forEach((end) => end());
  };

  close = (): void => {
    [this.#skipped, this.#reopened] = [true, false];
    keep(SKIPPED);
  };

  reopen = (): void => {
    this.#reopened = true;
    route.go('');
  };

  drillPassed(): void {
    this.#passed = true;
    keep(PASSED);
  }
}

// A browser may refuse to store anything; then it is forgotten with the page.
function read(key: string): boolean {
  try {
    return localStorage.getItem(key) !== null;
  } catch {
    return false;
  }
}

function keep(key: string): void {
  try {
    localStorage.setItem(key, 'yes');
  } catch {
    return;
  }
}

export const firstSteps = new FirstSteps();
