// The client over real connections to a server that gives prepared answers.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, beforeEach, describe, test } from 'node:test';
import { LimitedError, NetworkError, Satchel, SandboxError, SatchelError, UnauthorizedError } from 'satchel-client';
import { tools } from 'satchel-client/tools';

const refused = (code) => ({ error: { code, message: 'No.' }, message: 'No.', statusCode: 0 });
const ok = (body) => ({ status: 200, body });

describe('the client', () => {
  let requests; // what the server got
  let answers; // what it answers, the last one again and again
  let connections;
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    requests.push({ method: request.method, url: request.url, headers: request.headers, body: text && JSON.parse(text) });
    const { status, body, headers = {} } = answers.length > 1 ? answers.shift() : answers[0];
    if (status === 0) return request.socket.destroy();
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.on('connection', () => { connections++; });
  server.listen(0, '127.0.0.1');
  const listening = once(server, 'listening');
  after(() => { server.closeAllConnections(); server.close(); });

  const client = async (options = {}) => {
    await listening;
    return new Satchel({ url: `http://127.0.0.1:${server.address().port}`, key: ' satchel_key\n', sessionId: 's', backoff: 0, ...options });
  };
  beforeEach(() => { requests = []; answers = []; connections = 0; });

  test('each method sends the request that the document describes', async () => {
    const c = await client();
    for (const [call, method, url, body, answer] of [
      [() => c.sources(), 'GET', '/api/sources', '', {}],
      [() => c.sync(), 'POST', '/api/sync', { sessionId: 's' }, {}],
      [() => c.sync('a/b', { reset: true }), 'POST', '/api/sync/a%2Fb', { reset: true, sessionId: 's' }, {}],
      [() => c.snapshot(), 'POST', '/api/sandbox/snapshot', { sessionId: 's' }, {}],
      [() => c.search('x', { limit: 2 }), 'POST', '/api/sandbox/search', { query: 'x', limit: 2, sessionId: 's' }, {}],
      [() => c.read(['a']), 'POST', '/api/sandbox/read', { paths: ['a'], sessionId: 's' }, {}],
      [() => c.searchAndRead('x', { read: 1 }), 'POST', '/api/sandbox/search-and-read', { query: 'x', read: 1, sessionId: 's' }, {}],
      [() => c.bash('ls'), 'POST', '/api/sandbox/shell', { command: 'ls', sessionId: 's' }, { results: [{ end: 'exited' }] }],
      [() => c.bashBatch(['ls', 'pwd']), 'POST', '/api/sandbox/shell', { commands: ['ls', 'pwd'], sessionId: 's' }, {}],
      [() => c.facts(), 'GET', '/api/memory', '', {}],
      [() => c.remember([{ type: 't', key: 'k', value: 'v' }]), 'PUT', '/api/memory', { facts: [{ type: 't', key: 'k', value: 'v' }] }, {}],
      [() => c.forget('t', 'a b', { etag: 'e' }), 'DELETE', '/api/memory/t/a%20b', '', {}],
    ]) {
      answers = [ok(answer)];
      await call();
      const got = requests.pop();
      assert.deepEqual([got.method, got.url, got.body, got.headers.authorization], [method, url, body, 'Bearer satchel_key']);
      if (method === 'DELETE') assert.equal(got.headers['if-match'], '"e"');
    }
  });

  test('the session of an answer is kept', async () => {
    answers = [ok({ sessionId: 'another', results: [] })];
    const c = await client();
    await c.bashBatch(['ls']);
    await c.bashBatch(['ls']);
    assert.deepEqual(requests.map((r) => r.body.sessionId), ['s', 'another']);
    assert.equal(c.sessionId, 'another');
    assert.notEqual((await client({ sessionId: undefined })).sessionId, (await client({ sessionId: undefined })).sessionId);
  });

  test('connections are used again, after errors too', async () => {
    answers = [ok({}), { status: 404, body: refused('not_found') }, ok({}), { status: 404, body: refused('not_found') }, ok({})];
    const c = await client();
    for (let i = 0; i < 6; i++) await c.sources().catch((e) => assert.equal(e.code, 'not_found'));
    assert.ok(connections <= 1, `${connections} connections`); // 0: that of an earlier test
  });

  test('each error has its type', async () => {
    const c = await client({ retries: 0 });
    const call = { search: () => c.search('x'), bash: () => c.bash('x') };
    for (const [answer, type, code, how = 'search'] of [
      [{ status: 401, body: refused('unauthenticated') }, UnauthorizedError, 'unauthenticated'],
      [{ status: 403, body: refused('forbidden') }, UnauthorizedError, 'forbidden'],
      [{ status: 429, body: refused('limited'), headers: { 'retry-after': '7' } }, LimitedError, 'limited'],
      [{ status: 503, body: refused('unavailable') }, SandboxError, 'unavailable', 'bash'],
      [ok({ results: [{ end: 'lost' }] }), SandboxError, 'unavailable', 'bash'],
      [{ status: 503, body: refused('unavailable') }, SatchelError, 'unavailable'],
      [{ status: 404, body: refused('not_found') }, SatchelError, 'not_found'],
      [{ status: 0 }, NetworkError, 'network'],
      [{ status: 502, body: '<html>', headers: { 'content-type': 'text/html' } }, NetworkError, 'network'],
      [{ status: 200, body: '{' }, NetworkError, 'network'],
      [{ status: 200, body: '[' }, NetworkError, 'network'],
      [{ status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } }, NetworkError, 'network'],
      [{ status: 500, body: { error: { code: 'strange', message: 'x' } } }, NetworkError, 'network'],
    ]) {
      answers = [answer];
      const error = await call[how]().then(() => assert.fail('no error'), (e) => e);
      assert.deepEqual([error.constructor, error.code, error.name], [type, code, type.name]);
      if (code === 'limited') assert.equal(error.retryAfter, 7);
    }
  });

  test('requests are repeated if that is safe', async () => {
    const c = await client();
    const fact = { type: 't', key: 'k', value: 'v' };
    for (const [name, answer, call, sent] of [
      ['a broken connection', { status: 0 }, () => c.search('x'), 2],
      ['a server that starts', { status: 503, body: refused('unavailable') }, () => c.read(['x']), 2],
      ['a limit', { status: 429, body: refused('limited') }, () => c.bashBatch(['x']), 2],
      ['a limit for long', { status: 429, body: refused('limited'), headers: { 'retry-after': '3600' } }, () => c.search('x'), 1],
      ['a wrong key', { status: 401, body: refused('unauthenticated') }, () => c.search('x'), 1],
      ['a command that may have run', { status: 0 }, () => c.bashBatch(['x']), 1],
      ['a sync that may have started', { status: 0 }, () => c.sync(), 1],
      ['a fact', { status: 0 }, () => c.remember([fact]), 2],
      ['a fact of a version', { status: 0 }, () => c.remember([{ ...fact, baseEtag: 'e' }]), 1],
      ['a removed fact', { status: 0 }, () => c.forget('t', 'k'), 1],
    ]) {
      [requests, answers] = [[], [answer, ok({ results: [], files: [], facts: [] })]];
      await call().catch((e) => assert.ok(e instanceof SatchelError, String(e)));
      assert.equal(requests.length, sent, name);
    }
    [requests, answers] = [[], [{ status: 503, body: refused('unavailable') }]];
    await assert.rejects(c.search('x'));
    assert.equal(requests.length, 4, 'an end');
  });

  test('a signal ends a request that waits for its repetition', async () => {
    answers = [{ status: 429, body: refused('limited'), headers: { 'retry-after': '20' } }];
    const abort = new AbortController();
    const c = await client({ fetch: async (...args) => { const r = await fetch(...args); abort.abort(); return r; } });
    await assert.rejects(c.search('x', { signal: abort.signal }), { name: 'AbortError' });
    assert.equal(requests.length, 1);
  });

  test('the key goes only over https, or to this machine', () => {
    for (const url of ['http://satchel.example.com', 'ftp://localhost', 'satchel.example.com']) assert.throws(() => new Satchel({ url, key: 'k' }), TypeError, url);
    assert.throws(() => new Satchel({ url: 'https://satchel.example.com', key: ' ' }), TypeError);
    assert.ok(new Satchel({ url: 'https://satchel.example.com/mcp', key: 'k' }));
  });

  test('the tools give a model the parts of an answer that it needs', async () => {
    const { search, read, search_and_read: both, bash } = tools(await client());
    answers = [ok({ total: 1, results: [{ id: 'docs/a.md#x', title: 'A', snippet: 's', path: 'docs/a.md', score: 1 }], files: [{ path: 'docs/a.md', content: 'c' }] })];
    assert.deepEqual((await search.execute({ query: 'x' }, {})).results, [{ id: 'docs/a.md#x', title: 'A', heading: undefined, url: undefined, snippet: 's' }]);
    assert.deepEqual((await both.execute({ query: 'x' }, {})).files, [{ path: 'docs/a.md', content: 'c', next: undefined }]);
    answers = [ok({ files: [{ path: 'docs/a.md', content: 'c' }, { path: 'docs/b.md', content: '', error: { code: 'not_found', message: 'No.' } }] })];
    assert.deepEqual(await read.execute({ paths: ['docs/a.md', 'docs/b.md'] }, {}), [{ path: 'docs/a.md', content: 'c', next: undefined }, { path: 'docs/b.md', error: 'No.' }]);
    answers = [ok({ results: [{ stdout: 'o', stderr: 'e', exitCode: 3, end: 'exited' }] })];
    assert.deepEqual(await bash.execute({ command: 'x' }, {}), { stdout: 'o', stderr: 'e', exitCode: 3 });
    assert.ok([search, read, both, bash].every((t) => t.inputSchema.safeParse({}).success === false));
  });
});
