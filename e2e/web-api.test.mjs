// A program with a key uses the REST API of a real server: it searches and reads
// what somebody published, runs commands over it in a real sandbox, and reaches
// nothing else; then what docs/api.md tells people to type, and the pages on which
// people make keys and admins see how the server is.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open } from './lib/browser.mjs';
import { sdkV1 } from './lib/clients.mjs';
import { cleanup, serve } from './lib/oauth.mjs';
import { binary } from './lib/server.mjs';
import { until } from './lib/until.mjs';

describe('the REST API', { skip: missing }, () => {
  const later = cleanup();
  const people = [];
  let s;
  let browser;
  let ada; // the admin's pages
  const keys = {};

  const call = async (who, method, path, body, headers = {}) => {
    const r = await fetch(`${s.issuer}${path}`, {
      method, body: body && JSON.stringify(body),
      headers: { ...(keys[who] && { Authorization: `Bearer ${keys[who]}` }), ...(body && { 'Content-Type': 'application/json' }), ...headers },
    });
    return { status: r.status, headers: r.headers, body: await r.json() };
  };
  const shell = async (who, commands, sessionId) => {
    const r = await call(who, 'POST', '/api/sandbox/shell', { commands: [commands].flat(), sessionId });
    assert.equal(r.status, 200, JSON.stringify(r.body));
    return r.body;
  };
  const out = async (who, command, sessionId) => {
    const [r] = (await shell(who, command, sessionId)).results;
    return r.stdout + r.stderr;
  };

  const person = async (name) => {
    const p = await open(browser, { baseURL: s.issuer });
    people.push(p);
    await p.page.goto(name === 'admin' ? s.link() : s.link('--user', name));
    await p.page.getByRole('button', { name: /^sign in/i }).first().click();
    await p.page.waitForURL((u) => !u.pathname.startsWith('/signin'));
    return p.page;
  };

  before(async () => {
    s = await serve(later, { env: { SATCHEL_SANDBOX_RUNTIME: 'gvisor' } });
    browser = await launch(later);
    keys.ada = s.server.firstKey();
    for (const name of ['bob', 'eve']) {
      s.run('user', 'add', name);
      keys[name] = s.run('token', 'create', '--user', name, '--name', 'script').token;
    }
    keys.second = s.run('token', 'create', '--user', 'bob', '--name', 'another').token;
    keys.reads = s.run('token', 'create', '--user', 'bob', '--scope', 'read', '--name', 'reads').token;
    const client = await sdkV1(s.mcp, keys.ada);
    const r = await client.call('bash', {
      command: `mkdir -p knowledge/team && printf '# How we deploy\\n\\nThe deploy checklist: call the zeppelin captain.\\n' > knowledge/team/deploy.md
printf 'nobody else may know the word quixotic\\n' > knowledge/diary.md; ln -s ../diary.md knowledge/team/leak.md`, comment: 'Write what the team needs',
    });
    assert.ok(!r.isError, JSON.stringify(r));
    await client.close();

    ada = await person('admin');
    await ada.goto('/library');
    await ada.getByRole('link', { name: /Publish from/ }).click();
    await ada.getByLabel('Directory', { exact: true }).selectOption('knowledge/team');
    await ada.getByRole('button', { name: 'Preview', exact: true }).click();
    await ada.getByText('More settings').click();
    await ada.getByLabel('ID', { exact: true }).fill('handbook');
    await ada.getByLabel('Only you, and people whom you name').check();
    await ada.getByLabel('Their user names').fill('bob');
    await ada.getByRole('button', { name: 'Publish', exact: true }).click();
    await ada.getByText('for you and bob').waitFor();
    await until('it is searched', async () => (await call('bob', 'POST', '/api/sandbox/search', { query: 'zeppelin' })).body.results?.length === 1);
  });

  after(async () => {
    await later.run();
    assert.deepEqual(people.flatMap((p) => p.complaints), []);
  });

  test('who asks, and what there is', async () => {
    const r = await call('bob', 'GET', '/api');
    assert.equal(r.status, 200);
    assert.deepEqual([r.body.you.user, r.body.you.scopes, r.body.shell], ['bob', ['read', 'write'], true]);
    const nobody = await call('', 'GET', '/api');
    assert.deepEqual([nobody.status, nobody.body.error.code, nobody.body.statusCode], [401, 'unauthenticated', 401]);
    assert.match(nobody.headers.get('www-authenticate'), /^Bearer .*resource_metadata=/);
    assert.equal((await call('', 'GET', '/api/openapi.json')).body.openapi, '3.0.3');
  });

  test('the sources, and bringing one up to date', async () => {
    const [source] = (await call('reads', 'GET', '/api/sources')).body.sources;
    assert.deepEqual([source.id, source.path, source.state, source.files], ['handbook', 'docs/handbook', 'ready', 1]);
    const r = await call('bob', 'POST', '/api/sync/handbook');
    assert.deepEqual([r.status, r.body.runs[0].source, r.body.runs[0].state], [202, 'handbook', 'done']);
    assert.equal((await call('bob', 'POST', '/api/sync/none')).status, 404);
    assert.equal((await call('reads', 'POST', '/api/sync/handbook')).status, 403);
  });

  test('search and read', async () => {
    const found = await call('reads', 'POST', '/api/sandbox/search', { query: 'zeppelin', paths: ['docs/handbook'] });
    assert.equal(found.body.results[0].path, 'docs/handbook/deploy.md');
    assert.equal((await call('bob', 'POST', '/api/sandbox/search', { query: 'zeppelin', paths: ['docs/other'] })).body.results.length, 0);
    const both = await call('bob', 'POST', '/api/sandbox/search-and-read', { query: 'zeppelin' });
    assert.match(both.body.files[0].content, /captain/);
    const { files } = (await call('bob', 'POST', '/api/sandbox/read', { paths: [found.body.results[0].id, 'docs/handbook/', 'docs/handbook/*.md', 'docs/none.md'] })).body;
    assert.deepEqual(files.map((f) => f.kind), ['file', 'list', 'list', 'error']);
    assert.match(files[0].content, /^# How we deploy\n/);
    assert.match(files[1].content, /^deploy\.md/);
  });

  test('a shell in a real sandbox', async () => {
    const first = await shell('bob', ['pwd; ls docs', 'grep -rl captain docs; exit 3', 'echo hi > /tmp/mine; cat docs/handbook/deploy.md | head -1'], 'a');
    assert.deepEqual(first.results.map((r) => [r.stdout, r.exitCode, r.end]), [['/library\nhandbook\n', 0, 'exited'], ['docs/handbook/deploy.md\n', 3, 'exited'], ['# How we deploy\n', 0, 'exited']]);
    assert.equal(first.fresh, true);
    const again = await shell('bob', 'cat /tmp/mine', 'a');
    assert.deepEqual([again.fresh, again.results[0].stdout], [false, 'hi\n']);
  });

  test('attack: another key, another session, another person', async () => {
    for (const [who, session] of [['bob', 'b'], ['bob', undefined], ['second', 'a'], ['eve', 'a'], ['ada', 'a']]) {
      assert.match(await out(who, 'cat /tmp/mine', session), /No such file/, `${who} ${session}`);
    }
  });

  test('attack: whom it is not published for', async () => {
    assert.deepEqual((await call('eve', 'GET', '/api/sources')).body.sources, []);
    assert.equal((await call('eve', 'POST', '/api/sandbox/search', { query: 'zeppelin' })).body.results.length, 0);
    assert.equal((await call('eve', 'POST', '/api/sandbox/read', { paths: ['docs/handbook/deploy.md'] })).body.files[0].kind, 'error');
    assert.equal((await call('eve', 'POST', '/api/sync/handbook')).status, 404);
    assert.doesNotMatch(await out('eve', 'ls docs; cat docs/handbook/deploy.md'), /^handbook|zeppelin/m);
  });

  test('attack: the space, the host and the network cannot be reached', async () => {
    const text = await out('ada', 'ls -A /space; cat /space/knowledge/diary.md; cat /library/docs/handbook/leak.md; cat /library/docs/handbook/../../../space/knowledge/diary.md; cat /space/.git/HEAD');
    assert.doesNotMatch(text, /quixotic|refs\/heads/);
    assert.match(await out('ada', 'touch /library/x /library/docs/handbook/x /space/x'), /(touch: cannot touch.*\s+){3}/);
    assert.match(await out('ada', 'exec 3<>/dev/tcp/127.0.0.1/' + s.server.port), /unreachable|refused|Network/i);
    for (const path of ['/space/knowledge/diary.md', '../space/knowledge/diary.md', 'docs/../../space/knowledge/diary.md', '/etc/passwd', 'knowledge/diary.md', 'docs/handbook/leak.md', 'docs/handbook/../diary.md']) {
      const [f] = (await call('ada', 'POST', '/api/sandbox/read', { paths: [path] })).body.files;
      assert.equal(f.kind, 'error', path);
    }
    assert.equal((await call('ada', 'POST', '/api/sandbox/search', { query: 'quixotic' })).body.results.length, 0);
  });

  test('attack: a revoked key, and one that is revoked while its command runs', async () => {
    const made = s.run('token', 'create', '--user', 'bob', '--name', 'short');
    keys.short = made.token;
    const running = call('short', 'POST', '/api/sandbox/shell', { command: 'sleep 60; echo secret' });
    await until('it runs', async () => /sleep 60/.test((await call('short', 'POST', '/api/sandbox/shell', { command: 'ps -e -o args || cat /proc/*/cmdline | tr "\\0" " "' })).body.results?.[0].stdout));
    s.run('token', 'revoke', made.id);
    const r = await running;
    assert.deepEqual([r.status, r.body.error.code], [401, 'unauthenticated']);
    assert.equal((await call('short', 'GET', '/api')).status, 401);
  });

  test('attack: a page of another site', async () => {
    const r = await fetch(`${s.issuer}/api/sandbox/search`, { method: 'OPTIONS', headers: { Origin: 'https://evil.test', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization' } });
    assert.equal(r.status, 405);
    assert.equal(r.headers.get('access-control-allow-origin'), null);
    // Signed in here is nothing there.
    const status = (await ada.context().request.get(`${s.issuer}/api/sources`)).status();
    assert.equal(status, 401);
  });

  test('what the guide tells people to type', () => {
    const dir = s.data;
    writeFileSync(join(dir, 'key'), keys.bob);
    const guide = readFileSync(join(import.meta.dirname, '../docs/api.md'), 'utf8');
    const examples = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map((m) => m[1]);
    assert.equal(examples.length, 8);
    const answers = examples.map((e) => JSON.parse(execFileSync('bash', ['-c', e], { cwd: dir, env: { ...process.env, URL: s.issuer }, encoding: 'utf8' })));
    assert.equal(answers[0].you.user, 'bob');
    assert.equal(answers[1].results[0].path, 'docs/handbook/deploy.md');
    assert.deepEqual(answers[2].files.map((f) => f.kind), ['file', 'file', 'list']);
    assert.match(answers[3].results[0].stdout, /deploy\.md:.*checklist/);
    assert.equal(answers[4].runs[0].source, 'handbook');
    assert.equal(answers[5].facts[0].outcome, 'added');
    assert.equal(answers[6].path, 'knowledge/deploy.md');
    assert.equal(answers[7].path, 'knowledge/deploy.md');
    assert.notEqual(answers[7].etag, answers[6].etag);
  });

  test('the commands', () => {
    const run = (...args) => spawnSync(binary, ['api', ...args, '--url', s.issuer, '--key-file', join(s.data, 'key')], { encoding: 'utf8' });
    assert.match(run('search', 'zeppelin').stdout, /^docs\/handbook\/deploy\.md/);
    assert.match(run('read', 'docs/handbook/deploy.md').stdout, /^# How we deploy\n/);
    assert.match(run('sources').stdout, /^handbook +ready +1 file\b/);
    assert.equal(run('shell', 'ls docs').stdout, 'handbook\n');
    const failed = run('shell', 'ls docs', 'exit 3');
    assert.deepEqual([failed.status, failed.stderr], [1, 'satchel: command 2 exited with 3\n']);
  });

  test('the pages: keys, access, health', async () => {
    await ada.goto('/account/keys');
    await judge(ada, 'api-keys');
    await ada.getByLabel('Name').fill('nightly report');
    await ada.getByRole('button', { name: 'Create the key' }).click();
    await ada.getByRole('heading', { level: 1, name: 'Your new key' }).waitFor();
    await judge(ada, 'api-key');
    const key = await ada.getByLabel('The key', { exact: true }).inputValue();
    keys.made = key;
    assert.equal((await call('made', 'GET', '/api')).body.you.client, 'nightly report');
    await ada.getByRole('link', { name: 'I copied the key' }).click();
    await ada.getByRole('button', { name: 'Revoke nightly report' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await ada.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
    assert.equal((await call('made', 'GET', '/api')).status, 401);

    await ada.goto('/admin');
    await judge(ada, 'admin-people');
    await ada.getByRole('navigation', { name: 'Administration' }).getByRole('link', { name: 'Access' }).click();
    await ada.getByRole('heading', { level: 1, name: 'Access' }).waitFor();
    await judge(ada, 'admin-access');
    await ada.getByRole('navigation', { name: 'Administration' }).getByRole('link', { name: 'Health' }).click();
    await ada.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
    await judge(ada, 'admin-health');
    assert.match(await ada.getByRole('table').innerText(), /bob/);

    const bob = await person('bob');
    for (const path of ['/admin', '/admin/access', '/admin/health']) assert.equal((await bob.goto(path)).status(), 404);
    for (const p of people) p.complaints = p.complaints.filter((c) => !/status of 40[14]/.test(c));
  });
});
