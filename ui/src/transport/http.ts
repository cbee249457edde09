import { ApiError, itemOf, type Transport } from './index.ts';

const KEY = 'holdfast.token';
/** The API comments on an open stream every 15 s; two in a row missing means nobody is there. */
const SILENCE_MS = 35_000;
/** How long an answer is waited for, as the command line waits. What a person was asked about is never done later. */
const ANSWER_MS = 10_000;
/** Reading, where the process itself may have to look at a relay and a keyring that hang. */
const READ_MS = 3 * ANSWER_MS;
/** Commands that stop, start or take over something; above what stopping a relay and a link after their calls takes. */
const DEED_MS = 53_000;
const PROMPT = /^(answer|approve|deny|\w+_list)$/;

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

const silent = () => new ApiError('unavailable', 'Holdfast does not answer', 0);
const late = () => new ApiError('no_answer', 'Holdfast did not answer in time', 0);

function patience(method: string, path: string, body: unknown): number {
  if (method === 'GET') return READ_MS;
  const { command } = (body ?? {}) as { command?: string };
  return path !== '/api/command' || PROMPT.test(command ?? '') ? ANSWER_MS : DEED_MS;
}

function ask(method: string, path: string, token: string | undefined, body: unknown, signal: AbortSignal) {
  const headers: Record<string, string> = {};
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  return fetch(path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    signal,
  }).catch((error: unknown) => {
    throw error instanceof ApiError ? error : silent();
  });
}

async function read(response: Response): Promise<unknown> {
  const text = await response.text().catch((error: unknown) => {
    throw error instanceof ApiError ? error : new ApiError('unavailable', 'Holdfast stopped in the middle of an answer', 0);
  });
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function send<T>(method: string, path: string, token: string | undefined, body?: unknown): Promise<T> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(late()), patience(method, path, body));
  try {
    const response = await ask(method, path, token, body, abort.signal);
    const answer = await read(response);
    if (!response.ok) throw ApiError.of(response.status, answer);
    return answer as T;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A browser has six connections for all pages of one address, and every stream takes one. So a page that is hidden lets go
 * of the streams it follows, and tells that they ended when it is seen again. A drill (it has a body) goes on.
 */
function stream(
  path: string,
  token: string,
  onItem: (item: unknown) => void,
  onEnd: (why: ApiError | null) => void,
  body?: unknown,
): () => void {
  const abort = new AbortController();
  const follows = body === undefined;
  let ended = false;
  let dropped = false;
  let silence: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    ended = true;
    document.removeEventListener('visibilitychange', turn);
    clearTimeout(silence);
    abort.abort();
  };
  const end = (why: ApiError | null) => {
    if (ended) return;
    stop();
    onEnd(why);
  };
  const turn = () => {
    if (!document.hidden) return dropped ? end(null) : undefined;
    dropped = true;
    clearTimeout(silence);
    abort.abort();
  };
  const heard = (why = silent, ms = SILENCE_MS) => {
    clearTimeout(silence);
    silence = setTimeout(() => end(why()), ms);
  };
  const run = async () => {
    heard(late, ANSWER_MS);
    const response = await ask(follows ? 'GET' : 'POST', path, token, body, abort.signal);
    if (!response.ok || response.body === null) throw ApiError.of(response.status, await read(response));
    clearTimeout(silence);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      if (follows) heard();
      const { done, value } = await reader.read();
      if (ended || dropped) return;
      const lines = (rest + (value ?? '')).split('\n');
      rest = done ? '' : (lines.pop() ?? '');
      for (const line of lines) {
        const item = itemOf(line);
        if (item !== undefined && !ended) onItem(item);
      }
      if (done) return end(null);
    }
  };
  if (follows) {
    document.addEventListener('visibilitychange', turn);
    turn();
  }
  if (!dropped) {
    run().catch((error: unknown) => {
      if (!dropped) end(error instanceof ApiError ? error : new ApiError('unavailable', 'the stream broke', 0));
    });
  }
  return stop;
}
