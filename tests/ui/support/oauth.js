// A browser and an OAuth client in one, as far as the consent page that shows a code.

import { createHash, randomBytes } from 'node:crypto';

const REDIRECT = 'http://127.0.0.1:7/callback';

/** A client that registered and stands at its consent page, waiting for a person at the machine. */
export class Waiting {
  #cookie = '';

  static async at(mcp, account, name = 'ChatGPT') {
    const waiting = new Waiting();
    const refused = await fetch(mcp, { method: 'POST', body: '{}' });
    const metadata = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate'))[1];
    const { resource, authorization_servers } = await json(metadata);
    const server = await json(new URL('/.well-known/oauth-authorization-server', authorization_servers[0]));
    const { client_id } = await json(server.registration_endpoint, {
      client_name: name,
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    });
    const verifier = randomBytes(32).toString('base64url');
    Object.assign(waiting, { resource, server, client_id, verifier });
    const at = new URL(server.authorization_endpoint);
    at.search = new URLSearchParams({
      response_type: 'code', client_id, redirect_uri: REDIRECT, scope: 'mcp offline_access', state: 's', resource,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256',
    });
    waiting.at = at;
    await waiting.#submit(await waiting.#load(), { account, action: 'local' });
    return waiting;
  }

  /** The code the page shows. */
  async code() {
    return /approval code">([^<]+)</.exec(await this.#load())[1];
  }

  /** Allows on the page of somebody who was let in, and redeems what comes back; the tokens. */
  async tokens() {
    const back = await this.#submit(await this.#load(), { action: 'allow' });
    const response = await fetch(this.server.token_endpoint, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code', code: back.searchParams.get('code'), code_verifier: this.verifier,
        redirect_uri: REDIRECT, client_id: this.client_id, resource: this.resource,
      }),
    });
    return response.json();
  }

  async #load() {
    const response = await fetch(this.at, { headers: this.#headers(), redirect: 'manual' });
    this.#keep(response);
    return response.text();
  }

  async #submit(html, fill) {
    const form = /<form[^]*?<\/form>/.exec(html)[0];
    const fields = new URLSearchParams();
    for (const [input] of form.matchAll(/<input[^>]*>/g)) {
      const name = attribute(input, 'name');
      if (name !== null && !(name in fill)) fields.append(name, attribute(input, 'value') ?? '');
    }
    for (const [name, value] of Object.entries(fill)) fields.append(name, value);
    const action = new URL(attribute(form, 'action') ?? '', this.at);
    const response = await fetch(action, { method: 'POST', headers: this.#headers(), body: fields, redirect: 'manual' });
    this.#keep(response);
    const location = response.headers.get('location');
    if (location === null) throw new Error(`no redirect: ${response.status} ${await response.text()}`);
    this.at = new URL(location, this.at);
    return this.at;
  }

  #headers() {
    return { accept: 'text/html', origin: new URL(this.at).origin, ...(this.#cookie && { cookie: this.#cookie }) };
  }

  #keep(response) {
    const [cookie] = response.headers.getSetCookie();
    if (cookie) this.#cookie = cookie.split(';')[0];
  }
}

function attribute(element, name) {
  const value = new RegExp(` ${name}="([^"]*)"`).exec(element)?.[1];
  return value?.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&') ?? null;
}

async function json(url, body) {
  const init = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.json();
}
