// The OAuth client of both TypeScript SDKs, behind one interface, and a person
// who goes where the client sends them.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPClientTransport as HTTPv1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as HTTPv2, UnauthorizedError as UnauthorizedV2 } from '@modelcontextprotocol/client';

// Provider is the OAuthClientProvider that both take. It remembers what it was
// given, and counts the tokens.
export class Provider {
  constructor({ redirectUrl, clientMetadataUrl, client }) {
    this.redirectUrl = redirectUrl;
    if (clientMetadataUrl) this.clientMetadataUrl = clientMetadataUrl;
    this.client = client;
    // A preset client can be nothing else: it must not register itself.
    if (!client) this.saveClientInformation = (c) => { this.client = c; };
    this.saved = [];
  }

  get clientMetadata() {
    return {
      client_name: 'e2e TypeScript SDK', redirect_uris: [String(this.redirectUrl)],
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none',
    };
  }

  state() { return (this.expected = randomUUID()); }
  clientInformation() { return this.client; }
  tokens() { return this.saved.at(-1); }
  saveTokens(t) { this.saved.push(t); }
  redirectToAuthorization(url) { this.authorize = url; }
  saveCodeVerifier(v) { this.verifier = v; }
  codeVerifier() { return this.verifier; }
  saveDiscoveryState(d) { this.discovered = d; }
  discoveryState() { return this.discovered; }
  invalidateCredentials(scope) { throw new Error(`the server refused the client's ${scope}`); }
}

const v1 = {
  client: () => new ClientV1({ name: 'e2e-oauth-v1', version: '1' }),
  transport: (url, authProvider) => new HTTPv1(new URL(url), { authProvider }),
  finish: (transport, callback) => transport.finishAuth(callback.searchParams.get('code')),
  Unauthorized: UnauthorizedV1,
};
const v2 = (options) => ({
  client: () => new ClientV2({ name: 'e2e-oauth-v2', version: '1' }, options),
  transport: (url, authProvider) => new HTTPv2(new URL(url), { authProvider }),
  finish: (transport, callback) => transport.finishAuth(callback.searchParams), // checks iss
  Unauthorized: UnauthorizedV2,
});

export const sdks = {
  '@modelcontextprotocol/sdk': v1,
  '@modelcontextprotocol/client': v2({}),
  '@modelcontextprotocol/client, newest era': v2({ versionNegotiation: { mode: 'auto' } }),
};

// connect goes from the first 401 to a connected client. visit takes the URL that
// the client opens a browser at, and returns the one that the browser ends at.
export async function connect(sdk, url, provider, visit) {
  const first = sdk.transport(url, provider);
  await assert.rejects(sdk.client().connect(first), (e) => e instanceof sdk.Unauthorized, 'a client without a token was let in');
  assert.ok(provider.authorize, 'the client did not find where to send the person');
  const callback = await visit(provider.authorize);
  assert.equal(callback.searchParams.get('state'), provider.expected);
  await sdk.finish(first, callback);
  const client = sdk.client();
  await client.connect(sdk.transport(url, provider));
  return client;
}
