// Another issuer in place of the built-in authorization server: npm's
// oidc-provider signs people in and signs the tokens, and Satchel is the resource
// server alone. The issuer changes its keys and goes away in mid-run.
//   E2E_OUTAGE_SECONDS=N  how long it is away at least (default 1)
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Issuer } from './lib/issuer.mjs';
import { refused, rpc, serve } from './lib/oauth.mjs';
import { Provider, connect, sdks } from './lib/oauth-sdk.mjs';
import { until } from './lib/until.mjs';

const outage = Number(process.env.E2E_OUTAGE_SECONDS ?? 1);
const redirectUrl = 'http://localhost:33418/callback'; // nobody listens: the test is the browser
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const person = (name, domain = 'example.com') => ({ email: `${name}@${domain}`, email_verified: true, name: name[0].toUpperCase() + name.slice(1) });
const accounts = {
  ada: person('ada'), ben: person('ben'), cleo: person('cleo'), dora: person('dora'), emil: person('emil'), finn: person('finn'), gus: person('gus'), hugo: person('hugo'),
  eve: person('eve', 'elsewhere.example'), mallory: { ...person('mallory'), email_verified: false },
};

// settings of the server for an issuer.
const settings = (issuer, more = {}) => ({
  SATCHEL_AUTH_ISSUER_URL: issuer.url, SATCHEL_AUTH_ALLOW_DOMAINS: 'example.com', ...more,
});
const decoded = (token) => token.split('.').slice(0, 2).map((p) => JSON.parse(Buffer.from(p, 'base64url')));
const listed = async (client) => assert.ok((await client.listTools()).tools.length > 0);

const issuer = await new Issuer({ accounts }).start();
after(() => issuer.stop());
const s = await serve(after, { env: settings(issuer) });

// connected is a client that went through the issuer's pages as the account.
async function connected(account, { sdk = '@modelcontextprotocol/sdk', from = issuer, at = s } = {}) {
  const provider = new Provider({ redirectUrl });
  const client = await connect(sdks[sdk], at.mcp, provider, from.visitor(account));
  return { client, provider, token: () => provider.tokens().access_token };
}

// good is a token of the issuer's key for an account; change its claims.
const good = (account, change) => issuer.mint(issuer.claims(account, s.mcp, change));

async function isRefused(token, error, status = 401) {
  const r = await rpc(s.mcp, token, 'tools/list');
  assert.equal(r.status, status, r.text);
  assert.match(r.challenge, /^Bearer /);
  assert.match(r.challenge, new RegExp(`resource_metadata="${s.issuer}/.well-known/oauth-protected-resource/mcp"`));
  if (error) assert.match(r.challenge, new RegExp(`error="${error}"`));
  else assert.doesNotMatch(r.challenge, /error=/);
  return r;
}

test('the metadata of the resource names the issuer, and there is no other authorization server', async () => {
  for (const path of ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource']) {
    const m = await (await fetch(s.issuer + path)).json();
    assert.deepEqual(m.authorization_servers, [issuer.url]);
    assert.equal(m.resource, s.mcp);
    assert.ok(m.scopes_supported.includes('read') && m.scopes_supported.includes('write'));
  }
  for (const [method, path] of [['GET', '/.well-known/oauth-authorization-server'], ['POST', '/oauth/register'], ['POST', '/oauth/token'], ['GET', '/oauth/authorize']]) {
    assert.equal((await fetch(s.issuer + path, { method })).status, 404, path);
  }
});

for (const sdk of Object.keys(sdks)) {
  test(`from the first 401 to a call: ${sdk}`, async () => {
    const c = await connected('ada', { sdk });
    const [header, claims] = decoded(c.token());
    assert.deepEqual([header.alg, header.typ, claims.aud, claims.iss], ['ES256', 'at+jwt', s.mcp, issuer.url]);
    await listed(c.client);
    const answer = await c.client.callTool({ name: 'instructions', arguments: {} });
    assert.ok(!answer.isError, JSON.stringify(answer));
    await c.client.close();
  });
}

test('somebody on the allow list becomes a user at their first call, once', async () => {
  const users = () => s.run('user', 'list');
  const named = () => users().filter((u) => u.name.startsWith('ben'));
  assert.equal(named().length, 0);
  const token = good('ben');
  const answers = await Promise.all(Array.from({ length: 10 }, () => rpc(s.mcp, token, 'tools/list')));
  for (const r of answers) assert.equal(r.status, 200, r.text);
  assert.equal(named().length, 1, JSON.stringify(users()));
});

test('somebody who is not on it is let in nowhere, and neither is one whose address nobody verified', async () => {
  for (const account of ['eve', 'mallory']) {
    const r = await rpc(s.mcp, good(account), 'tools/list');
    assert.equal(r.status, 403, r.text);
    assert.ok(!s.run('user', 'list').some((u) => u.name.startsWith(account)));
  }
});

test('tokens that are for something else, or forged, are refused with the challenge', async () => {
  const other = await new Issuer({ accounts }).start();
  try {
    const stranger = { ...other.keys[0], kid: issuer.keys[0].kid };
    const token = good('ada');
    const [head, body, signature] = token.split('.');
    const part = (v) => Buffer.from(JSON.stringify(v)).toString('base64url');
    assert.equal((await rpc(s.mcp, token, 'tools/list')).status, 200, 'the attacks would prove nothing');
    const attacks = {
      'for another resource': good('ada', { aud: 'https://other.example/mcp' }),
      'for the server with a slash more': good('ada', { aud: `${s.mcp}/` }),
      'expired': good('ada', { exp: Math.floor(Date.now() / 1000) - 120 }),
      'not yet good': good('ada', { nbf: Math.floor(Date.now() / 1000) + 120 }),
      'tampered with': `${head}.${part({ ...decoded(token)[1], sub: 'ben' })}.${signature}`,
      'unsigned': `${part({ alg: 'none', typ: 'at+jwt' })}.${body}.`,
      'algorithm swapped': `${part({ alg: 'HS256', typ: 'at+jwt' })}.${body}.${signature}`,
      'of another issuer': other.mint(other.claims('ada', s.mcp)),
      'of another issuer that lies': other.mint({ ...other.claims('ada', s.mcp), iss: issuer.url }),
      'of another issuer that lies about its key too': issuer.mint(issuer.claims('ada', s.mcp), { key: stranger }),
      'a session without a client': good('ada', { client_id: undefined }),
      'an ID token': issuer.mint(issuer.claims('ada', s.mcp, { nonce: 'n', at_hash: 'h' }), { typ: 'JWT' }),
      'of nobody': good('ada', { sub: undefined }),
      'no token of any kind': 'abc',
    };
    for (const [name, t] of Object.entries(attacks)) {
      await test(name, () => isRefused(t, 'invalid_token'));
    }
    await isRefused(undefined);
    const inQuery = await fetch(`${s.mcp}?access_token=${token}`, { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' } });
    assert.equal(inQuery.status, 401);
  } finally {
    await other.stop();
  }
});

test("a real token that the issuer made for another resource's client", async () => {
  // The same person, the same issuer, another server: what that one gets is no
  // key to this one.
  const there = await serve(after, { env: settings(issuer) });
  const c = await connected('ada', { at: there });
  await listed(c.client);
  await c.client.close();
  await isRefused(c.token(), 'invalid_token');
});

test('scopes are the issuer\'s: reading does not let a client write, and none lets it do nothing', async () => {
  assert.equal((await rpc(s.mcp, good('ada', { scope: 'openid read' }), 'tools/list')).status, 200);
  const none = await rpc(s.mcp, good('ada', { scope: 'openid' }), 'tools/list');
  assert.equal(none.status, 403, none.text);
});

test('a token without scopes is told to get some', async () => {
  await isRefused(good('ada', { scope: 'openid' }), 'insufficient_scope', 403);
});

test("clients are told to ask for the issuer's names of the scopes", async () => {
  const at = await serve(after, { env: settings(issuer, { SATCHEL_AUTH_ISSUER_READ_SCOPES: 'notes.read,notes.all', SATCHEL_AUTH_ISSUER_WRITE_SCOPES: 'notes.all' }) });
  const m = await (await fetch(`${at.issuer}/.well-known/oauth-protected-resource/mcp`)).json();
  assert.deepEqual(m.scopes_supported, ['notes.read', 'notes.all']);
  assert.match((await rpc(at.mcp, undefined, 'tools/list')).challenge, /scope="notes.read notes.all"/);
});

test('an access token expires, and the client renews it at the issuer', async () => {
  const brief = await new Issuer({ accounts, lifetime: 2 }).start();
  try {
    const at = await serve(after, { env: settings(brief) });
    const c = await connected('dora', { from: brief, at });
    const first = c.token();
    await listed(c.client);
    const r = await refused(at.mcp, first);
    assert.match(r.challenge, /error="invalid_token"/);
    assert.match(r.challenge, /expired/);
    await listed(c.client);
    assert.notEqual(c.token(), first);
    await c.client.close();
  } finally {
    await brief.stop();
  }
});

test('RS256, and a person who signs in at two clients', async () => {
  const rsa = await new Issuer({ accounts, alg: 'RS256' }).start();
  try {
    const at = await serve(after, { env: settings(rsa) });
    for (const sdk of Object.keys(sdks)) {
      const c = await connected('emil', { from: rsa, at, sdk });
      assert.equal(decoded(c.token())[0].alg, 'RS256');
      await listed(c.client);
      await c.client.close();
    }
    assert.equal(at.run('user', 'list').filter((u) => u.name.startsWith('emil')).length, 1);
  } finally {
    await rsa.stop();
  }
});

test('the issuer changes its keys in mid-run: nobody is logged out, and old keys end', async () => {
  const c = await connected('cleo');
  const old = c.token();
  let calls = 0;
  let going = true;
  const busy = (async () => {
    for (; going; calls++) { await listed(c.client); await sleep(20); }
  })();
  busy.catch(() => {});
  issuer.rotate();
  assert.equal((await rpc(s.mcp, good('cleo'), 'tools/list')).status, 200, 'a token of the new key');
  assert.equal((await rpc(s.mcp, old, 'tools/list')).status, 200, 'a token of the old key, which is still published');
  issuer.retire();
  issuer.rotate();
  assert.equal((await rpc(s.mcp, good('cleo'), 'tools/list')).status, 200, 'a token of the newest key, for which the server fetches the keys');
  await refused(s.mcp, old); // and the client renews it in the midst of its calls
  const before = calls;
  while (calls < before + 10) await Promise.race([sleep(20), busy]);
  going = false;
  await busy;
  assert.notEqual(c.token(), old);
  assert.equal(decoded(c.token())[0].kid, issuer.keys[0].kid);
  await c.client.close();
});

test(`the issuer is away for ${outage} s: who holds a token works on, and a server that starts then says so`, async () => {
  const c = await connected('finn');
  const token = good('finn');
  assert.equal((await rpc(s.mcp, token, 'tools/list')).status, 200);
  await issuer.stop();
  const away = sleep(outage * 1000).then(() => true);
  for (let calls = 0; !(await Promise.race([away, sleep(100)])); calls++) {
    await listed(c.client);
    assert.equal((await rpc(s.mcp, token, 'tools/list')).status, 200, `after ${calls} calls`);
  }
  // One that starts now does not know the keys, starts all the same, and learns them.
  const late = await serve(after, { env: settings(issuer) });
  const lateToken = good('finn', { aud: late.mcp });
  assert.equal((await rpc(late.mcp, lateToken, 'tools/list')).status, 503);
  await issuer.resume();
  await until('the server finds its issuer', async () => {
    const r = await rpc(late.mcp, lateToken, 'tools/list');
    assert.ok(r.status === 200 || r.status === 503, `${r.status} ${r.text}`);
    return r.status === 200;
  });
  issuer.rotate();
  assert.equal((await rpc(s.mcp, good('finn'), 'tools/list')).status, 200, 'a key that is newer than the outage');
  await c.client.close();
});

test('what a user had ends at once when they are removed', async () => {
  const c = await connected('gus');
  await listed(c.client);
  const gus = s.run('user', 'list').find((u) => u.name === 'gus');
  s.run('user', 'remove', 'gus');
  assert.ok(!s.run('user', 'list').some((u) => u.id === gus.id));
  await rpc(s.mcp, c.token(), 'tools/list');
  assert.ok(!s.run('user', 'list').some((u) => u.id === gus.id), 'the user is back');
  await c.client.close();
});

test('a user who is removed is refused at the next call', async () => {
  const token = good('hugo');
  assert.equal((await rpc(s.mcp, token, 'tools/list')).status, 200);
  s.run('user', 'remove', 'hugo');
  const r = await rpc(s.mcp, token, 'tools/list');
  assert.ok(r.status === 401 || r.status === 403, `${r.status} ${r.text.slice(0, 200)}`);
});

// Last, since what it uses up delays by seconds what the server learns of new keys.
test('random keys in tokens do not make the server flood the issuer', async () => {
  const path = [...issuer.asked.keys()].find((p) => /jwks/.test(p));
  const begin = Date.now();
  const asked = issuer.asked.get(path);
  const { privateKey, alg } = issuer.keys[0];
  for (let i = 0; i < 300; i++) await isRefused(issuer.mint(issuer.claims('ada', s.mcp), { key: { privateKey, alg, kid: `random-${i}` } }), 'invalid_token');
  const seconds = (Date.now() - begin) / 1000;
  // Once a second in the background (keys_max_age), and of the callers' ten and one
  // more in 5 s.
  assert.ok(issuer.asked.get(path) - asked <= seconds + 1 + 10 + seconds / 5 + 1, `${issuer.asked.get(path) - asked} fetches in ${seconds} s`);
});
