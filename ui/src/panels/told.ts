// What went wrong, in words: by its code where the window knows a better sentence than the backend's own.

import { ApiError } from '../transport/index.ts';
import { t } from '../words/index.ts';

/** Any thrown thing as an error with a code. */
export function refusalOf(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError('internal_error', String(error), 0);
}

/** One sentence. */
export function told(error: ApiError): string {
  const id = `ui-error-${error.code}`;
  const text = t(id);
  return text === id ? sentence(error.message) : text;
}

function sentence(text: string): string {
  // What begins with a key of the configuration is left as it stands there.
  const start = /^\S+ = /.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(start) ? start : `${start}.`;
}
