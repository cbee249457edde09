import { ApiError, itemOf, type Transport } from './index.ts';

const KEY = 'holdfast.token';
/** The API comments on an open stream every 15 s; two in a row missing means nobody is there. */
const SILENCE_MS = 35_000;

/** The code that `holdfast open` puts into the address; tabs stand there as `#/…`. */
function code(): string {
  const hash = location.hash.slice(1);
  return hash.startsWith('/') ? '' : hash;
}

addEventListener('hashchange', () => {
  if (code() !== '') location.reload();
});

/** Trades the code in the address for a token, or takes the token of this tab. A code that was answered leaves the address. */
export async function httpTransport(): Promise<Transport> {
  if (code() !== '') {
    try {
      const { token } = await send<{ token: string }>('POST', '/api/session', undefined, { code: code() });
      sessionStorage.setItem(KEY, token);
    } catch (error) {
      if ((error as ApiError).status === 0) throw error;
      // A used code in a tab that has a token is an old address that was opened again: the token decides.
    }
    history.replaceState(null, '', location.pathname);
  }
  const token = sessionStorage.getItem(KEY) ?? '';
  return {
    kind: 'http',
    request: (method, path, body) => send(method, path, token, body),
    stream: (path, onItem, onEnd, body) => stream(path, token, onItem, onEnd, body),
    copy: (text) => navigator.clipboard.writeText(text),
  };
}

function ask(method: string, path: string, token: string | undefined, body: unknown, signal?: AbortSignal) {
  const headers: Record<string, string> = {};
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  return fetch(path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    signal: signal ?? null,
  }).catch(() => {
    throw new ApiError('unavailable', 'Holdfast does not answer', 0);
  });
}

async function read(response: Response): Promise<unknown> {
  const text = await response.text().catch(() => {
    throw new ApiError('unavailable', 'Holdfast stopped in the middle of an answer', 0);
  });
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function send<T>(method: string, path: string, token: string | undefined, body?: unknown): Promise<T> {
  const response = await ask(method, path, token, body);
  const answer = await read(response);
  if (!response.ok) throw ApiError.of(response.status, answer);
  return answer as T;
}

function stream(
  path: string,
  token: string,
  onItem: (item: unknown) => void,
  onEnd: (why: ApiError | null) => void,
  body?: unknown,
): () => void {
  const abort = new AbortController();
  let ended = false;
  let silence: ReturnType<typeof setTimeout> | undefined;
  const end = (why: ApiError | null) => {
    if (ended) return;
    ended = true;
    clearTimeout(silence);
    abort.abort();
    onEnd(why);
  };
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => end(new ApiError('unavailable', 'Holdfast does not answer', 0)), SILENCE_MS);
  };
  const run = async () => {
    const response = await ask(body === undefined ? 'GET' : 'POST', path, token, body, abort.signal);
    if (!response.ok || response.body === null) throw ApiError.of(response.status, await read(response));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      if (body === undefined) heard();
      const { done, value } = await reader.read();
      if (ended) return;
      const lines = (rest + (value ?? '')).split('\n');
      rest = done ? '' : (lines.pop() ?? '');
      for (const line of lines) {
        const item = itemOf(line);
        if (item !== undefined && !ended) onItem(item);
      }
      if (done) return end(null);
    }
  };
  run().catch((error: unknown) => {
    end(error instanceof ApiError ? error : new ApiError('unavailable', 'the stream broke', 0));
  });
  return () => {
    ended = true;
    clearTimeout(silence);
    abort.abort();
  };
}
