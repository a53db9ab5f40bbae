// Public https: the real binary gets its certificate from a real ACME authority,
// by either challenge, serves MCP with it, keeps it over a restart and renews it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Authority, Site } from './lib/acme.mjs';
import { Issuer } from './lib/issuer.mjs';
import { Server, binary, freePorts, remove, tempDir } from './lib/server.mjs';
import { until } from './lib/until.mjs';

const run = promisify(execFile);
const name = 'satchel.test';
const dirs = [];

// serve starts satchel under the name, on these ports.
async function serve(authority, { https, http, data = tempDir('satchel-https-') }) {
  if (!dirs.includes(data)) dirs.push(data);
  const server = new Server(data, { args: ['--domain', name, '--server-https-listen', `127.0.0.1:${https}`,
    '--server-http-listen', http ? `127.0.0.1:${http}` : '', '--server-acme-url', authority.url, '--server-acme-ca-file', authority.ca,
    '--server-acme-email', 'admin@satchel.test', '--sandbox-runtime', 'none', '--log-level', 'debug'] });
  await server.start();
  return server;
}

const certified = (site, server) => until(() => `no certificate:\n${server.output}`, () => site.tls().catch(() => null));

let authority;
let site;
let server;
let first;
let ports;

before(async () => {
  const [https, http] = await freePorts(2);
  ports = { https, http };
  authority = await new Authority({ tlsPort: https, httpPort: http }).start();
  site = new Site({ name, root: authority.root, port: https });
  server = await serve(authority, ports);
});

after(async () => {
  await server?.kill('SIGTERM');
  await authority?.stop();
  dirs.forEach(remove);
});

test('a certificate comes before anybody asks for it, over https alone first', async () => {
  await until(() => server.output, () => server.output.includes('obtained a certificate'));
  first = await site.tls({ ALPNProtocols: ['h2', 'http/1.1'] });
  assert.equal(first.alpn, 'h2');
  assert.equal(first.version, 'TLSv1.3');
  assert.match(first.chain, /Pebble Intermediate/);
  assert.equal(authority.orders(), 1);
  assert.ok(!authority.overHTTP());
});

test('MCP over https, with the chain that the authority gave', async () => {
  const client = new Client({ name: 'e2e-https', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`https://${name}/mcp`), {
    fetch: site.fetch, requestInit: { headers: { Authorization: `Bearer ${server.firstKey()}` } },
  }));
  const { tools } = await client.listTools();
  assert.ok(tools.length > 0);
  await client.close();
});

test('the metadata names the domain, and whoever has no token is told where it is', async () => {
  const res = await site.fetch(`https://${name}/mcp`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  assert.equal(res.status, 401);
  assert.match(res.headers.get('www-authenticate'), new RegExp(`resource_metadata="https://${name}/`));
  assert.match(res.headers.get('strict-transport-security'), /max-age=\d{7}/);
  const metadata = await (await site.fetch(`https://${name}/.well-known/oauth-protected-resource/mcp`)).json();
  assert.equal(metadata.resource, `https://${name}/mcp`);
  const as = await (await site.fetch(`https://${name}/.well-known/oauth-authorization-server`)).json();
  assert.equal(as.issuer, `https://${name}`);
});

test('HTTP/2', async () => {
  const headers = await site.h2('/healthz');
  assert.equal(headers[':status'], 200);
});

test('old versions of TLS are refused', async () => {
  await assert.rejects(site.tls({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' });
});

test('attack: handshakes under other names are refused, and the authority hears of none', async () => {
  const orders = authority.orders();
  const names = Array.from({ length: 200 }, (_, i) => `n${i}.${name}`);
  for (const servername of [...names, '', 'localhost', 'other.test', `${name}.other.test`]) {
    await assert.rejects(site.tls({ servername }), undefined, servername);
  }
  await assert.rejects(site.tls({ ALPNProtocols: ['acme-tls/1'] }), undefined, 'a challenge that is not under way');
  assert.equal(authority.orders(), orders);
  assert.equal((await site.tls()).serial, first.serial);
});

test('plain http sends browsers to https and refuses the rest', async () => {
  const plain = (path, init) => fetch(`http://127.0.0.1:${ports.http}${path}`, { redirect: 'manual', ...init });
  for (const [path, host] of [['/account?a=b', name], ['//evil.test/x', name], ['/', 'evil.test']]) {
    const res = await plain(path, { headers: { host } });
    assert.equal(res.status, 301);
    assert.equal(res.headers.get('location'), `https://${name}${path}`);
    assert.equal(res.headers.get('strict-transport-security'), null);
  }
  const post = await plain('/mcp', { method: 'POST', body: '{}', headers: { authorization: `Bearer ${server.firstKey()}` } });
  assert.equal(post.status, 400);
  assert.equal(post.headers.get('strict-transport-security'), null);
  assert.match(await post.text(), /replace the token/);
  assert.equal((await plain('/.well-known/acme-challenge/anything')).status, 404);
});

test('keys are on disk for the server alone', () => {
  const root = join(server.data, 'acme');
  assert.equal(statSync(root).mode & 0o777, 0o700);
  const files = readdirSync(root, { recursive: true, withFileTypes: true });
  assert.ok(files.some((f) => f.name === `${name}.pem`) && files.some((f) => f.name === 'account.pem'));
  for (const f of files) {
    assert.equal(statSync(join(f.parentPath ?? f.path, f.name)).mode & 0o777, f.isDirectory() ? 0o700 : 0o600, f.name);
  }
});

test('satchel auth check finds nothing wrong, and every client connects', async () => {
  const proxy = await site.proxy();
  const { code, stdout } = await run(binary, ['auth', 'check', `https://${name}/mcp`, '--register', '--json', '--data', server.data],
    { env: { ...process.env, HTTPS_PROXY: proxy.url, NO_PROXY: '', SSL_CERT_FILE: authority.rootFile } }).then((r) => ({ code: 0, ...r }), (e) => e);
  proxy.close();
  const report = JSON.parse(stdout);
  const wrong = report.findings.filter((f) => f.status === 'failed' || f.status === 'warning');
  assert.deepEqual(wrong, []);
  assert.equal(code, 0);
  assert.deepEqual(new Set(report.clients.map((c) => c.verdict)), new Set(['should connect']));
  for (const n of ['certificate', 'first request', 'resource', 'PKCE', 'registration', 'sign-in for Claude Code', 'forwarded host']) {
    assert.equal(report.findings.find((f) => f.name === n)?.status, 'ok', n);
  }
});

test('satchel auth check knows another issuer too', async () => {
  const issuer = await new Issuer().start();
  const data = tempDir('satchel-issuer-');
  dirs.push(data);
  const s = await new Server(data, { args: ['--auth-issuer-url', issuer.url, '--sandbox-runtime', 'none'] }).start();
  try {
    const { code, stdout } = await run(binary, ['auth', 'check', s.url, '--register', '--json', '--data', data]).then((r) => ({ code: 0, ...r }), (e) => e);
    const report = JSON.parse(stdout);
    const status = (n) => report.findings.find((f) => f.name === n)?.status;
    assert.equal(code, 0, stdout);
    for (const n of ['first request', 'resource', 'authorization server', 'server metadata', 'PKCE', 'registration', 'sign-in for a registered client', 'unknown client', 'token endpoint']) {
      assert.equal(status(n), 'ok', n);
    }
    assert.equal(status('URL'), 'warning', 'loopback');
    assert.equal(status('client identification'), 'warning', 'it knows no metadata documents');
    const verdict = (n) => report.clients.find((c) => c.name === n).verdict;
    assert.equal(verdict('Cursor'), 'should connect');
    assert.equal(verdict('ChatGPT'), 'cannot connect', 'it comes from elsewhere');
  } finally {
    await s.kill('SIGTERM');
    await issuer.stop();
  }
});

test('a restart asks for no other certificate', async () => {
  const orders = authority.orders();
  await server.kill('SIGKILL');
  server = await serve(authority, { ...ports, data: server.data });
  assert.equal((await certified(site, server)).serial, first.serial);
  assert.equal(authority.orders(), orders);
});

test('renewal, without a visitor, without a pause and over plain http where https is not reached', async () => {
  const [https, http, nowhere] = await freePorts(3);
  const short = await new Authority({ tlsPort: nowhere, httpPort: http, validity: 32 }).start();
  const s = await serve(short, { https, http });
  try {
    const there = new Site({ name, root: short.root, port: https });
    const one = await certified(there, s);
    await until(() => s.output, () => s.output.match(/obtained a certificate/g)?.length >= 2);
    const two = await there.tls();
    assert.notEqual(two.serial, one.serial);
    assert.ok(two.validTo > one.validTo);
    assert.ok(Date.now() < one.validTo, 'the first one was over before it was renewed');
    assert.ok(short.overHTTP());
    assert.equal(short.orders(), 3, 'the way that worked is tried first');
    assert.ok(!/level=(ERROR|WARN) .*part=acme/.test(s.output), s.output);
  } finally {
    await s.kill('SIGTERM');
    await short.stop();
  }
});

test('an authority that cannot connect is no end, and the log says what to do', async () => {
  const [https, http, nowhere, neither] = await freePorts(4);
  const blind = await new Authority({ tlsPort: nowhere, httpPort: neither }).start();
  const s = await serve(blind, { https, http });
  try {
    await until(() => s.output, () => s.output.includes('nobody can connect over https'));
    assert.match(s.output, /DNS records/);
    assert.match(s.output, /port/);
    assert.match(s.output, /again_in=5m0s/);
    assert.ok((await fetch(s.url.replace(/mcp$/, 'readyz'))).ok, 'loopback is served all the same');
    await assert.rejects(new Site({ name, root: blind.root, port: https }).tls());
    assert.equal(blind.orders(), 2, 'one for each challenge');
  } finally {
    await s.kill('SIGTERM');
    await blind.stop();
  }
});

test('behind a proxy people are counted by the address that it says, and nobody chooses theirs', async () => {
  const limits = ['--auth-rate', '0.01', '--sandbox-runtime', 'none'];
  const many = (server, address) => Promise.all(Array.from({ length: 10 }, (_, i) => fetch(new URL('/oauth/token', server.url), {
    method: 'POST', body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'x', client_id: 'y' }),
    headers: { 'x-forwarded-for': address(i), forwarded: `for=198.51.100.${i}`, 'x-real-ip': `198.51.100.${i}` },
  }))).then((all) => all.filter((r) => r.status !== 429).length);
  const start = async (...args) => {
    const data = tempDir('satchel-proxy-');
    dirs.push(data);
    return new Server(data, { args: [...limits, ...args] }).start();
  };
  const behind = await start('--server-trusted-proxies', '127.0.0.1/32,10.0.0.0/8');
  const alone = await start();
  try {
    assert.equal(await many(behind, () => '203.0.113.1'), 3);
    assert.equal(await many(behind, () => '203.0.113.2'), 3, 'another person has a limit of their own');
    assert.equal(await many(behind, () => '203.0.113.1, 10.0.0.7'), 0, 'behind two proxies it is the same person');
    assert.equal(await many(behind, (i) => `198.51.100.${i}, 203.0.113.1`), 0, 'attack: addresses left of what the proxy wrote');
    assert.equal(await many(behind, (i) => `2001:db8:0:1::${i}`), 3, 'attack: addresses of one network');
    assert.equal(await many(alone, (i) => `203.0.113.${i}`), 3, 'attack: made-up addresses without a proxy');
  } finally {
    await behind.kill('SIGTERM');
    await alone.kill('SIGTERM');
  }
});
