// A client that asks to be let in, and the browser page at which it waits.

import { createHash, randomBytes } from 'node:crypto';

const REDIRECT = 'http://127.0.0.1:7/callback';
const random = () => randomBytes(32).toString('base64url');

async function post(url, body) {
  const response = await fetch(url, body);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.json();
}

export class Guest {
  #verifier = random();

  /** Registers under a name and opens its page up to the code. */
  static async ask(browser, mcp, name) {
    const guest = new Guest();
    guest.origin = new URL(mcp).origin;
    guest.resource = mcp;
    const registration = { client_name: name, redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' };
    const headers = { 'content-type': 'application/json' };
    const made = await post(`${guest.origin}/oauth/register`, { method: 'POST', headers, body: JSON.stringify(registration) });
    guest.id = made.client_id;
    const context = await browser.newContext();
    guest.page = await context.newPage();
    // Nobody listens where the client would.
    await guest.page.route(`${REDIRECT}*`, (route) => route.fulfill({ body: 'signed in', contentType: 'text/plain' }));
    const query = new URLSearchParams({
      response_type: 'code', client_id: guest.id, redirect_uri: REDIRECT, scope: 'mcp offline_access', state: random(),
      code_challenge: createHash('sha256').update(guest.#verifier).digest('base64url'), code_challenge_method: 'S256',
      resource: mcp,
    });
    await guest.page.goto(`${guest.origin}/oauth/authorize?${query}`);
    await guest.page.getByRole('button', { name: 'Approve with Holdfast' }).click();
    await guest.page.getByLabel('approval code').waitFor();
    return guest;
  }

  /** As the page shows it. */
  code() {
    return this.page.getByLabel('approval code').innerText();
  }

  /** After the code was typed: allows at the page and fetches the token. */
  async enter() {
    await this.page.getByRole('button', { name: 'Allow' }).click();
    await this.page.waitForURL(`${REDIRECT}*`);
    const body = new URLSearchParams({
      grant_type: 'authorization_code', code: new URL(this.page.url()).searchParams.get('code'), client_id: this.id,
      code_verifier: this.#verifier, redirect_uri: REDIRECT, resource: this.resource,
    });
    this.token = (await post(`${this.origin}/oauth/token`, { method: 'POST', body })).access_token;
    return this.token;
  }
}
