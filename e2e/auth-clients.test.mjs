// Real OAuth clients against the real binary, each from its first 401 to a token
// that it refreshed by itself.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, watch, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import * as oauth from 'oauth4webapi';
import { launch, missing, open } from './lib/browser.mjs';
import { Provider, connect, sdks } from './lib/oauth-sdk.mjs';
import { allow, awaitRedirect, cleanup, Person, refused, rpc, serve } from './lib/oauth.mjs';
import { freePorts, remove, tempDir } from './lib/server.mjs';
import { limit } from './lib/until.mjs';

const claudeCode = 'https://claude.ai/oauth/claude-code-client-metadata';
const scratch = tempDir('satchel-clients-');
const later = cleanup();
later(() => remove(scratch));
let s; // its access tokens are good for ten seconds
let person;

before(async () => {
  s = await serve(later, { lifetime: '10s' });
  person = new Person(s.issuer);
  await person.signIn(s.link());
});
after(later.run);

// visit is a browser at which the person consents.
const visit = (url) => person.consent(url);
// listsTools checks that tools for reading and for writing are among those that a client sees.
const listsTools = (tools) => {
  const names = tools.map((x) => x.name ?? x);
  for (const want of ['read', 'bash']) assert.ok(names.includes(want), `${want} in ${names}`);
};

test('oauth4webapi', async (t) => {
  const http = { [oauth.allowInsecureRequests]: true };
  const resource = new URL(s.mcp);
  const redirect = 'http://127.0.0.1:4711/callback'; // nobody listens: the person tells where they were sent

  const challenge = await fetch(s.mcp, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' });
  assert.equal(challenge.status, 401);
  const metadata = /resource_metadata="([^"]+)"/.exec(challenge.headers.get('www-authenticate'))[1];
  assert.equal(metadata, `${s.issuer}/.well-known/oauth-protected-resource/mcp`);

  const rs = await oauth.processResourceDiscoveryResponse(resource, await oauth.resourceDiscoveryRequest(resource, http));
  assert.deepEqual(rs.authorization_servers, [s.issuer]);
  const issuer = new URL(rs.authorization_servers[0]);
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...http }));
  assert.ok(as.authorization_response_iss_parameter_supported);
  assert.deepEqual(as.code_challenge_methods_supported, ['S256']);

  const client = await oauth.processDynamicClientRegistrationResponse(await oauth.dynamicClientRegistrationRequest(as, {
    client_name: 'oauth4webapi', redirect_uris: [redirect], token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
  }, http));
  assert.equal(client.client_secret, undefined);
  const none = oauth.None();

  // ask is one authorization request that the person answers.
  const ask = async (answer, changes = {}) => {
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const url = new URL(as.authorization_endpoint);
    url.search = new URLSearchParams({
      client_id: client.client_id, redirect_uri: redirect, response_type: 'code', scope: 'read write', state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256', resource: s.mcp, ...changes,
    });
    return { verifier, state, callback: await answer(url) };
  };
  const redeem = async (asked, verifier = asked.verifier, { uri = redirect, target = s.mcp } = {}) =>
    oauth.processAuthorizationCodeResponse(as, client, await oauth.authorizationCodeGrantRequest(as, client, none,
      oauth.validateAuthResponse(as, client, asked.callback, asked.state), uri, verifier, { ...http, additionalParameters: { resource: target } }));
  const renew = async (refresh, additionalParameters = {}) => oauth.processRefreshTokenResponse(as, client,
    await oauth.refreshTokenGrantRequest(as, client, none, refresh, { ...http, additionalParameters }));
  const fails = (promise, error, status = 400) => assert.rejects(promise,
    (e) => e instanceof oauth.ResponseBodyError && e.error === error && e.status === status || assert.fail(`want ${error}, got ${e.stack} ${JSON.stringify(e.cause)}`));

  const asked = await ask(visit);
  const tokens = await redeem(asked);
  assert.equal(tokens.token_type, 'bearer');
  assert.ok(tokens.expires_in <= 10);
  assert.equal(tokens.scope ?? 'read write', 'read write');
  const listed = await rpc(s.mcp, tokens.access_token, 'tools/list');
  listsTools(listed.answer.result.tools);

  await t.test('an expired token is refused with a challenge, and refreshed', async () => {
    const r = await refused(s.mcp, tokens.access_token);
    assert.match(r.challenge, /^Bearer .*error="invalid_token"/);
    assert.match(r.challenge, /resource_metadata="/);
    const renewed = await renew(tokens.refresh_token, { resource: s.mcp });
    assert.notEqual(renewed.access_token, tokens.access_token);
    assert.notEqual(renewed.refresh_token, tokens.refresh_token);
    assert.equal((await rpc(s.mcp, renewed.access_token, 'tools/list')).status, 200);
    tokens.next = renewed;
  });

  await t.test('five refreshes at once log nobody out', async () => {
    const five = await Promise.all(Array.from({ length: 5 }, () => renew(tokens.next.refresh_token)));
    assert.equal(new Set(five.map((x) => x.refresh_token)).size, 1);
    tokens.next = await renew(five[0].refresh_token);
    assert.equal((await rpc(s.mcp, tokens.next.access_token, 'tools/list')).status, 200);
  });

  await t.test('a revoked token', async () => {
    const { refresh_token, access_token } = tokens.next;
    await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, none, refresh_token, http));
    assert.equal((await rpc(s.mcp, access_token, 'tools/list')).status, 401);
    await fails(renew(refresh_token), 'invalid_grant');
    // RFC 7009 section 2.2: a token that is none is no error.
    await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, none, 'nonsense', http));
  });

  await t.test('errors are those of RFC 6749', async () => {
    await fails(redeem(asked), 'invalid_grant'); // used already
    await fails(redeem(await ask(visit), oauth.generateRandomCodeVerifier()), 'invalid_grant');
    await fails(redeem(await ask(visit), undefined, { uri: 'http://127.0.0.1:4712/callback' }), 'invalid_grant');
    await fails(redeem(await ask(visit), undefined, { target: 'https://other.example/mcp' }), 'invalid_target');
    await fails(renew('nonsense'), 'invalid_grant');
    await fails(oauth.processRefreshTokenResponse(as, { client_id: 'nobody' },
      await oauth.refreshTokenGrantRequest(as, { client_id: 'nobody' }, none, tokens.refresh_token, http)), 'invalid_client', 401);
    const r = await oauth.genericTokenEndpointRequest(as, client, none, 'client_credentials', {}, http);
    await fails(oauth.processGenericTokenEndpointResponse(as, client, r), 'unsupported_grant_type');

    const redirected = async (error, answer, changes) => {
      const a = await ask(answer, changes);
      assert.throws(() => oauth.validateAuthResponse(as, client, a.callback, a.state),
        (e) => e instanceof oauth.AuthorizationResponseError && e.error === error || assert.fail(`want ${error}, got ${e} at ${a.callback}`));
      assert.equal(a.callback.searchParams.get('iss'), s.issuer);
    };
    await redirected('access_denied', (url) => person.refuse(url));
    // Nobody is sent on by themselves to a client that anybody may have registered:
    // a page leads there.
    const sent = async (url) => {
      const page = await person.go(url);
      assert.equal(page.status, 200);
      const link = /<a class="button" href="([^"]+)"/.exec(page.html);
      assert.ok(link, page.html);
      return new URL(link[1].replaceAll('&amp;', '&'));
    };
    await redirected('unsupported_response_type', sent, { response_type: 'token' });
    await redirected('invalid_request', sent, { code_challenge_method: 'plain' });
    await redirected('invalid_target', sent, { resource: 'https://other.example/mcp' });
  });

  await t.test('a redirect that was not registered is a page, and nobody is sent there', async () => {
    const a = await ask((url) => person.go(url), { redirect_uri: 'https://evil.example/callback' });
    assert.equal(a.callback.status, 400);
    assert.equal(a.callback.location, null);
  });
});

const introductions = {
  'a metadata document': (uri) => ({ redirectUrl: uri, clientMetadataUrl: claudeCode }),
  'dynamic registration': (uri) => ({ redirectUrl: uri }),
  'a preset client': (uri) => ({ redirectUrl: uri, client: { client_id: s.run('client', 'add', 'e2e preset', '--redirect', uri).id } }),
};
// At the same time, since they mostly wait until their tokens expire.
describe('the TypeScript SDKs', { concurrency: true }, () => {
  for (const [sdkName, sdk] of Object.entries(sdks)) {
    for (const [name, introduce] of Object.entries(introductions)) {
      test(`${sdkName} with ${name}`, async () => {
        const provider = new Provider(introduce(`http://localhost:${40000 + Math.floor(Math.random() * 9000)}/callback`));
        const client = await connect(sdk, s.mcp, provider, visit);
        try {
          listsTools((await client.listTools()).tools);
          await refused(s.mcp, provider.tokens().access_token);
          const before = provider.saved.length;
          const answer = await client.callTool({ name: 'instructions', arguments: {} });
          assert.ok(!answer.isError && answer.content.length > 0);
          assert.ok(provider.saved.length > before, 'the client did not refresh its token');
        } finally {
          await client.close();
        }
      });
    }
  }
});

// The scopes that were asked for at first are the server's to name; later the
// client asks for what a tool lacks. (The older SDK refreshes instead, which gives
// it no more.)
for (const [sdkName, sdk] of Object.entries(sdks).filter(([name]) => name !== '@modelcontextprotocol/sdk')) {
  test(`${sdkName} asks the person for more where a tool needs more`, async () => {
    const provider = new Provider({ redirectUrl: 'http://localhost:4714/callback' });
    const client = await connect(sdk, s.mcp, provider, (url) => person.consent(url, { write: [] }));
    try {
      assert.equal(provider.tokens().scope, 'read');
      const { status, challenge } = await rpc(s.mcp, provider.tokens().access_token, 'tools/call', { name: 'bash', arguments: { command: 'true' } });
      assert.equal(status, 403);
      assert.match(challenge, /error="insufficient_scope"/);
      delete provider.authorize;
      await assert.rejects(client.callTool({ name: 'bash', arguments: { command: 'true' } }));
      assert.equal(provider.authorize.searchParams.get('scope'), 'read write');
      const transport = sdk.transport(s.mcp, provider);
      await sdk.finish(transport, await visit(provider.authorize));
      assert.equal(provider.tokens().scope, 'read write');
      assert.equal((await rpc(s.mcp, provider.tokens().access_token, 'tools/call', { name: 'bash', arguments: { command: 'true' } })).status, 200);
    } finally {
      await client.close();
    }
  });
}

test('the address with digits, which the server prints too, leads to a connection', async () => {
  const provider = new Provider({ redirectUrl: 'http://127.0.0.1:4713/callback' });
  const client = await connect(sdks['@modelcontextprotocol/sdk'], s.server.url, provider, visit);
  try {
    listsTools((await client.listTools()).tools);
  } finally {
    await client.close();
  }
});

test('go-sdk', async (t) => {
  const program = join(scratch, 'gosdk');
  execFileSync('go', ['build', '-o', program, '.'], { cwd: join(import.meta.dirname, 'gosdk'), env: { ...process.env, CGO_ENABLED: '0' }, stdio: ['ignore', 'inherit', 'inherit'] });
  // preset's redirect has a port that the client does not take: on loopback no
  // port counts (RFC 8252 section 7.3).
  const ways = {
    registered: () => [],
    document: () => ['-client', claudeCode],
    preset: () => ['-client', s.run('client', 'add', 'Go SDK', '--redirect', 'http://127.0.0.1:1/callback').id],
  };
  for (const [as, args] of Object.entries(ways)) {
    await t.test(as, async () => {
      const child = spawn(program, ['-url', s.mcp, '-as', as, ...args()], { stdio: ['ignore', 'pipe', 'pipe'] });
      let errors = '';
      child.stderr.setEncoding('utf8').on('data', (x) => { errors += x; });
      const closed = once(child, 'close');
      const told = {};
      try {
        for await (const line of createInterface({ input: child.stdout })) {
          const said = JSON.parse(line);
          Object.assign(told, said);
          if (said.authorize) await fetch(await visit(said.authorize));
        }
      } finally {
        child.kill();
      }
      assert.equal((await closed)[0], 0, errors);
      listsTools(told.tools);
      assert.ok(told.content.length > 0);
      assert.ok(told.refreshes > 0);
    });
  }
});

test("the Inspector's command line", async () => {
  const home = join(scratch, 'inspector');
  mkdirSync(home);
  const callback = `http://127.0.0.1:${(await freePorts(1))[0]}/oauth/callback`;
  // inspect lists the tools, and tells whether a person was asked.
  const inspect = async () => {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'node_modules/.bin/mcp-inspector'), '--cli', s.mcp, '--transport', 'http',
      '--callback-url', callback, '--method', 'tools/list', '--format', 'json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, HOME: home, BROWSER: 'true', MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'file' },
    });
    let [out, errors, asked] = ['', '', null];
    child.stdout.setEncoding('utf8').on('data', (x) => { out += x; });
    child.stderr.setEncoding('utf8').on('data', (x) => {
      errors += x;
      const url = /http:\/\/localhost:\d+\/oauth\/authorize\?\S+(?=\s)/.exec(errors + (x.endsWith('\n') ? '' : ' '))?.[0];
      if (url) asked ??= visit(url).then(fetch).catch((e) => { errors += e.stack; child.kill(); });
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 0, errors + out);
    listsTools(JSON.parse(out).result.tools);
    return asked !== null;
  };
  assert.equal(await inspect(), true);
  const [token] = execFileSync('grep', ['-rhoE', 'satchel_at_[A-Za-z0-9_-]+', home], { encoding: 'utf8' }).split('\n');
  await refused(s.mcp, token);
  assert.equal(await inspect(), false, 'the person was asked again, and the token not refreshed');
});

test('mcp-remote, with the browser that it opens', { skip: missing }, async () => {
  const browser = await launch(later);
  const { page, complaints } = await open(browser);
  await page.goto(s.link());
  await page.getByRole('button', { name: /sign in|continue/i }).click();
  await page.waitForURL((u) => !u.pathname.startsWith('/signin'));

  // The system's browser is a program that writes down where it is to go.
  const asked = join(scratch, 'asked');
  const shim = join(scratch, 'browser');
  writeFileSync(shim, `#!/bin/sh\nprintf %s "$1" >'${asked}.new' && mv '${asked}.new' '${asked}'\n`);
  chmodSync(shim, 0o755);
  const opened = (async () => {
    const changes = watch(scratch);
    try {
      while (!existsSync(asked)) await once(changes, 'change');
      return await readFile(asked, 'utf8');
    } finally {
      changes.close();
    }
  })();

  const config = join(scratch, 'mcp-auth');
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(import.meta.dirname, 'node_modules/.bin/mcp-remote'), s.mcp, '--allow-http', '--transport', 'http-only'],
    env: { PATH: process.env.PATH, HOME: scratch, BROWSER: shim, MCP_REMOTE_CONFIG_DIR: config },
    stderr: 'pipe',
  });
  let log = '';
  transport.stderr.setEncoding('utf8').on('data', (x) => { log += x; });
  const client = new ClientV1({ name: 'e2e-mcp-remote', version: '1' });
  const connected = client.connect(transport, { timeout: limit });
  try {
    await page.goto(await Promise.race([opened, connected.then(() => assert.fail('mcp-remote connected without a browser'))]));
    await page.getByRole('button', { name: allow }).click();
    await page.waitForURL(/^http:\/\/localhost:\d+\/oauth\/callback\?.*iss=/);
    await connected;
    listsTools((await client.listTools()).tools);
    const tokens = /"access_token": ?"([^"]+)"/;
    const stored = async () => tokens.exec(execFileSync('find', [config, '-name', '*tokens.json', '-exec', 'cat', '{}', '+'], { encoding: 'utf8' }))[1];
    const first = await stored();
    await refused(s.mcp, first);
    const answer = await client.callTool({ name: 'instructions', arguments: {} });
    assert.ok(!answer.isError && answer.content.length > 0);
    assert.notEqual(await stored(), first, 'mcp-remote did not refresh its token');
    assert.deepEqual(complaints.filter((c) => c.startsWith(s.issuer)), []);
  } catch (e) {
    throw new Error(`${e.stack}\nmcp-remote said:\n${log}`);
  } finally {
    await client.close();
  }
});

test('a server that is killed logs nobody out', async () => {
  const sdk = sdks['@modelcontextprotocol/client'];
  const provider = new Provider({ redirectUrl: 'http://localhost:4715/callback' });
  await (await connect(sdk, s.mcp, provider, visit)).close();
  await s.server.kill('SIGKILL');
  await s.server.start();
  await refused(s.mcp, provider.tokens().access_token);
  const saved = provider.saved.length;
  const client = sdk.client();
  try {
    await client.connect(sdk.transport(s.mcp, provider));
    listsTools((await client.listTools()).tools);
    assert.ok(provider.saved.length > saved);
  } finally {
    await client.close();
  }
  const page = await person.go('/account');
  assert.equal(page.url.pathname, '/account', 'the person is signed out');
});
