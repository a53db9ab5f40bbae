// The Go and the TypeScript client of the REST API, with their own tests and their example agents,
// against a real server.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { cleanup, serve } from './lib/oauth.mjs';
import { until } from './lib/until.mjs';

const root = join(import.meta.dirname, '..');
const typescript = join(root, 'integrations/typescript');
const question = 'Who may call the zeppelin captain?';

describe('clients of the REST API', () => {
  const later = cleanup();
  let packed; // what npm would publish
  let s;
  let keyFile;
  const run = (program, args, options = {}) => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const npm = (...args) => run('npm', ['run', '--silent', ...args], { cwd: typescript });

  before(async () => {
    // This also builds it.
    [packed] = JSON.parse(run('npm', ['pack', '--dry-run', '--json', '--silent'], { cwd: typescript }));
    s = await serve(later, { env: { SATCHEL_SANDBOX_RUNTIME: 'gvisor' } });
    keyFile = join(s.data, 'agent-key');
    writeFileSync(keyFile, s.server.firstKey());
    const call = async (method, path, body) => (await fetch(`${s.issuer}/api${path}`, {
      method, body: JSON.stringify(body), headers: { Authorization: `Bearer ${s.server.firstKey()}`, 'Content-Type': 'application/json' },
    })).json();
    await call('PUT', '/files', { path: 'knowledge/deploy.md', content: '# How we deploy\n\nA deploy takes an hour.\n\nOnly the mayor may call the zeppelin captain.\n' });
    s.run('source', 'publish', 'handbook', '--title', 'Handbook');
    await until('the source is searched', async () => (await call('POST', '/sandbox/search', { query: 'zeppelin' })).files?.length === 1);
  });
  after(() => later.run());

  test('the types are those of the OpenAPI document', () => {
    npm('generated');
  });

  test('the tests of the TypeScript client', () => {
    npm('test');
  });

  test('the package has what a program needs', () => {
    const paths = packed.files.map((f) => f.path);
    for (const path of ['LICENSE', 'README.md', 'dist/index.js', 'dist/index.d.ts', 'dist/tools.js', 'dist/tools.d.ts']) assert.ok(paths.includes(path), path);
    assert.ok(paths.every((p) => /^(dist\/|LICENSE$|README\.md$|package\.json$)/.test(p)), String(paths));
  });

  test('the example agent in TypeScript', () => {
    const out = run(process.execPath, ['examples/agent.mjs', question], { cwd: typescript, env: { ...process.env, SATCHEL_URL: s.issuer, SATCHEL_TOKEN: s.server.firstKey() } });
    assert.match(out, /^Only the mayor may call the zeppelin captain\.\n\nFrom docs\/handbook\/deploy\.md$/m);
  });

  test('the client in TypeScript, in one sandbox', async () => {
    const { Satchel, SatchelError, UnauthorizedError } = await import(join(typescript, 'dist/index.js'));
    const c = new Satchel({ url: s.issuer, key: s.server.firstKey() });
    assert.equal((await c.sources()).space.sources[0].id, 'handbook');
    assert.equal((await c.sync('handbook')).runs[0].state, 'done');
    const session = c.sessionId;
    assert.deepEqual((await c.bashBatch(['ls docs/handbook/deploy.md', 'echo here > /tmp/note'])).results.map((r) => r.stdout), ['docs/handbook/deploy.md\n', '']);
    assert.equal((await c.bash('cat /tmp/note')).stdout, 'here\n');
    assert.equal(c.sessionId, session);
    const [saved] = await c.remember([{ type: 'preference', key: 'seat', value: 'Window', explicit: true }]);
    assert.equal(saved.outcome, 'added');
    assert.deepEqual((await c.facts()).map((f) => f.value), ['Window']);
    await c.forget('preference', 'seat');
    assert.deepEqual(await c.facts(), []);
    await assert.rejects(c.sync('none'), (e) => e instanceof SatchelError && e.code === 'not_found');
    await assert.rejects(new Satchel({ url: s.issuer, key: 'wrong' }).sources(), UnauthorizedError);
  });

  test('the example agent in Go', () => {
    const agent = join(s.data, 'agent');
    run('go', ['build', '-o', agent, './web/client/agent'], { cwd: root, env: { ...process.env, CGO_ENABLED: '0' } });
    const out = run(agent, ['--url', s.issuer, '--key-file', keyFile, '--source', 'handbook', question]);
    assert.match(out, /^Only the mayor may call the zeppelin captain\.\n\nFrom docs\/handbook\/deploy\.md$/m);
  });
});
