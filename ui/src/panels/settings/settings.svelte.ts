// The configuration as the file and the process have it, and what came of each change.

import type { ConfigView } from '../../api/types.ts';
import { app } from '../../state/app.svelte.ts';
import type { ApiError } from '../../transport/index.ts';
import { refusalOf, told } from '../told.ts';

interface Applied {
  changed: string[];
  restart: string[];
}

/** `same`: nothing changed. `overruled`: the file says it, and the command line of the process says otherwise. */
export type Came = 'applied' | 'restart' | 'same' | 'overruled' | { error: string };

export class Settings {
  view = $state.raw<ConfigView | null>(null);
  refusal = $state.raw<ApiError | null>(null);
  /** What came of the last change of a key. */
  came = $state.raw<Record<string, Came>>({});
  /** Values that wait for a restart. */
  #waiting = $state.raw<Record<string, unknown>>({});
  #asked = 0;

  /** An answer that a later question overtook says what was. */
  load = async (): Promise<void> => {
    this.#asked += 1;
    const asked = this.#asked;
    try {
      const view = await app.transport.request<ConfigView>('GET', '/api/config');
      if (asked === this.#asked) [this.view, this.refusal] = [view, null];
    } catch (error) {
      if (asked === this.#asked) this.refusal = refusalOf(error);
    }
  };

  /** What a control shows: what was asked for, or what is in force. */
  get(key: string): unknown {
    return key in this.#waiting ? this.#waiting[key] : this.inForce(key);
  }

  inForce(key: string): unknown {
    const [table = '', name = ''] = key.split('.');
    const tables: Record<string, Record<string, unknown>> = { ...this.view?.config };
    return tables[table]?.[name] ?? null;
  }

  text = (key: string): string => String(this.get(key) ?? '');

  error(key: string): string | null {
    const came = this.came[key];
    return typeof came === 'object' ? came.error : null;
  }

  /** Writes one key, or takes it away with null. Tells whether that was taken. */
  put = async (key: string, value: unknown): Promise<boolean> => {
    try {
      const { changed, restart } = await app.command<Applied>({ command: 'configure', set: { [key]: value } });
      if (restart.includes(key)) this.#waiting = { ...this.#waiting, [key]: value };
      else this.#forget(key);
      await this.load();
      this.#say(key, restart.includes(key) ? 'restart' : changed.includes(key) ? 'applied' : this.#untouched(key));
      return true;
    } catch (error) {
      this.#say(key, { error: told(refusalOf(error)) });
      return false;
    }
  };

  /** Something that is no key of the file: a command of its own. */
  act = async (key: string, deed: () => Promise<unknown>): Promise<void> => {
    try {
      await deed();
      await this.applied(key);
    } catch (error) {
      this.#say(key, { error: told(refusalOf(error)) });
    }
  };

  applied = async (key: string): Promise<void> => {
    this.#say(key, 'applied');
    await this.load();
  };

  restart = async (): Promise<void> => {
    await app.act({ command: 'restart' });
    [this.#waiting, this.came] = [{}, {}];
    await this.load();
  };

  #untouched(key: string): Came {
    const written = this.view?.set[key];
    return written === undefined || String(written) === String(this.inForce(key)) ? 'same' : 'overruled';
  }

  #say(key: string, came: Came): void {
    this.came = { ...this.came, [key]: came };
  }

  #forget(key: string): void {
    const { [key]: _, ...rest } = this.#waiting;
    this.#waiting = rest;
  }
}
