// How the window reaches the process: the same endpoints over the desktop shell's bridge or over the loopback API.

import { httpTransport } from './http.ts';
import { bridgeIsThere, bridgeTransport } from './tauri.ts';

export interface Transport {
  readonly kind: 'tauri' | 'http';
  /** Throws an {@link ApiError} for every answer that is no success, and when there is no answer (`unavailable`). */
  request<T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<T>;
  /** Items of an event stream or of ndjson as they come. The returned function ends it; `onEnd` is then not called. */
  stream(path: string, onItem: (item: unknown) => void, onEnd: (why: ApiError | null) => void, body?: unknown): () => void;
  copy(text: string): Promise<void>;
}

export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    /** 0 when no answer came. */
    readonly status: number,
  ) {
    super(message);
  }

  /** From the body of an answer that is no success. */
  static of(status: number, body: unknown): ApiError {
    const { code, message } = (body ?? {}) as { code?: unknown; message?: unknown };
    return new ApiError(
      typeof code === 'string' ? code : 'failed',
      typeof message === 'string' ? message : `Holdfast answered ${status}`,
      status,
    );
  }
}

/** The item of one line: `data: {…}` of an event stream or a line of ndjson; undefined for comments and field lines. */
export function itemOf(line: string): unknown {
  const text = line.startsWith('data:') ? line.slice(5).trim() : line.trim();
  return /^[{["]/.test(text) ? JSON.parse(text) : undefined;
}

export function openTransport(): Promise<Transport> {
  return bridgeIsThere() ? Promise.resolve(bridgeTransport()) : httpTransport();
}
