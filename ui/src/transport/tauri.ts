// The desktop shell's bridge. The only file that knows Tauri.

import { Channel, invoke, isTauri } from '@tauri-apps/api/core';

import { ApiError, itemOf, type Transport } from './index.ts';

interface Answer {
  status: number;
  body: unknown;
}

/** What comes down a stream's channel: lines of the answer, then its end. */
type Piece = { line: string } | { end: { status: number; body: unknown } | null };

export const bridgeIsThere = isTauri;

export function bridgeTransport(): Transport {
  return {
    kind: 'tauri',
    async request<T>(method: string, path: string, body?: unknown): Promise<T> {
      const answer = await call<Answer>('request', { method, path, body });
      if (answer.status >= 400) throw ApiError.of(answer.status, answer.body);
      return answer.body as T;
    },
    stream(path, onItem, onEnd, body) {
      let ended = false;
      const channel = new Channel<Piece>((piece) => {
        if (ended) return;
        if ('line' in piece) {
          const item = itemOf(piece.line);
          if (item !== undefined) onItem(item);
        } else {
          ended = true;
          onEnd(piece.end === null ? null : ApiError.of(piece.end.status, piece.end.body));
        }
      });
      const id = call<number>('stream', { path, body, channel });
      id.catch((error: ApiError) => {
        if (ended) return;
        ended = true;
        onEnd(error);
      });
      return () => {
        ended = true;
        id.then((id) => call('unstream', { id })).catch(() => {});
      };
    },
    copy: (text) => call('copy', { text }),
  };
}

function call<T>(command: string, args: Record<string, unknown>): Promise<T> {
  return invoke<T>(command, args).catch((error: unknown) => {
    throw new ApiError('unavailable', String(error), 0);
  });
}
