// An authorization server that is not Satchel's: oidc-provider, as a company
// would run one, on loopback. It can go away, come back, and change its keys.
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { Person } from './oauth.mjs';

const b64 = (v) => Buffer.from(typeof v === 'string' ? v : JSON.stringify(v)).toString('base64url');

// keyPair makes a key of the issuer for the algorithm.
function keyPair(alg) {
  const { privateKey, publicKey } = alg === 'RS256' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const kid = createHash('sha256').update(publicKey.export({ type: 'spki', format: 'der' })).digest('base64url').slice(0, 16);
  return { kid, alg, privateKey, jwk: { ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' } };
}

// memory is what an issuer remembers of clients, sessions and grants: oidc-provider's
// own forgets it with every change of keys, since each is a new provider.
function memory() {
  const all = new Map();
  return class {
    constructor(model) { this.model = model; }
    async upsert(id, payload) { all.set(`${this.model}:${id}`, payload); }
    async find(id) { return all.get(`${this.model}:${id}`); }
    async findByUid(uid) { return [...all].find(([k, v]) => k.startsWith(`${this.model}:`) && v.uid === uid)?.[1]; }
    async findByUserCode() {}
    async consume(id) { all.get(`${this.model}:${id}`).consumed = Math.floor(Date.now() / 1000); }
    async destroy(id) { all.delete(`${this.model}:${id}`); }
    async revokeByGrantId(grant) { for (const [k, v] of all) if (v.grantId === grant) all.delete(k); }
  };
}

export class Issuer {
  // alg is that of its access tokens; accounts are { id: claims }.
  constructor({ alg = 'ES256', accounts = {}, lifetime = 3600 } = {}) {
    this.alg = alg;
    this.accounts = accounts;
    this.lifetime = lifetime;
    this.asked = new Map(); // how often each path was
    this.adapter = memory();
  }

  async start() {
    await this.#listen();
    // The RS256 key is for ID tokens, without which no client may register.
    this.keys = [keyPair(this.alg), keyPair('RS256')];
    this.#provide();
    return this;
  }

  // stop closes the port, so that nobody can connect; resume opens the same one.
  async stop() {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  async resume() {
    await this.#listen();
  }

  // rotate begins to sign with a new key; what was signed with the old one is good
  // as long as that is published.
  rotate() {
    this.keys = [keyPair(this.alg), ...this.keys];
    this.#provide();
  }

  // retire takes the older keys of access tokens out of what is published.
  retire() {
    const [first, ...rest] = this.keys;
    this.keys = [first, ...rest.filter((k) => k.alg !== this.alg)];
    if (!this.keys.some((k) => k.alg === 'RS256')) this.keys.push(keyPair('RS256'));
    this.#provide();
  }

  // mint signs claims with the key of access tokens, for tokens that the issuer
  // itself would not make at the wish of a test.
  mint(claims, header = {}) {
    const key = header.key ?? this.keys[0];
    const { key: _, ...rest } = header;
    const text = `${b64({ alg: key.alg, kid: key.kid, typ: 'at+jwt', ...rest })}.${b64(claims)}`;
    return `${text}.${sign('sha256', text, { key: key.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  }

  // claims are those of a good access token for the resource.
  claims(account, resource, change = {}) {
    const now = Math.floor(Date.now() / 1000);
    return {
      iss: this.url, sub: account, aud: resource, client_id: 'minted', scope: 'read write', jti: randomUUID(),
      iat: now, exp: now + 3600, ...this.accounts[account], ...change,
    };
  }

  // visitor returns what connect of oauth-sdk takes: somebody who signs in as the
  // account and allows what the client asks.
  visitor(account) {
    const person = new Person(this.url);
    return async (authorize) => {
      let page = await person.go(authorize);
      for (let steps = 0; !page.location && steps < 5; steps++) {
        page = /name="login"/.test(page.html)
          ? await person.press(page, /sign-in/i, { login: account, password: 'any' })
          : await person.press(page, /continue/i);
      }
      if (!page.location) throw new Error(`the issuer leads nowhere: ${page.status} ${page.url}\n${page.html.slice(0, 2000)}`);
      return page.location;
    };
  }

  async #listen() {
    this.server = createServer((req, res) => {
      const path = new URL(req.url, this.url).pathname;
      this.asked.set(path, (this.asked.get(path) ?? 0) + 1);
      this.handler(req, res);
    });
    this.server.listen(this.port ?? 0, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = this.server.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
  }

  // #provide makes a provider with the keys that there are now.
  #provide() {
    const provider = new Provider(this.url, {
      adapter: this.adapter,
      jwks: { keys: this.keys.map((k) => k.jwk) },
      cookies: { keys: ['e2e'] },
      scopes: ['openid', 'offline_access', 'read', 'write'],
      ttl: { AccessToken: this.lifetime, Grant: 86400, Session: 86400, RefreshToken: 86400, Interaction: 600, IdToken: 600, AuthorizationCode: 60 },
      issueRefreshToken: () => true,
      findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...this.accounts[id] }) }),
      extraTokenClaims: (_, token) => this.accounts[token.accountId],
      features: {
        devInteractions: { enabled: true },
        registration: { enabled: true },
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: (_, resource) => ({
            scope: 'read write', audience: resource, accessTokenTTL: this.lifetime,
            accessTokenFormat: 'jwt', jwt: { sign: { alg: this.alg } },
          }),
        },
      },
    });
    provider.on('server_error', (_, err) => { console.error(err); });
    this.handler = provider.callback();
  }
}
