// Two users with two keys at once, 16 concurrent bash calls each: no error, and
// every acknowledged write is in the right repository and none in the other.
// E2E_LOAD_SECONDS says how long (default 15).
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sdkV2 } from '../lib/clients.mjs';
import { git } from '../lib/git.mjs';
import { Server, remove, satchel, tempDir } from '../lib/server.mjs';

const seconds = Number(process.env.E2E_LOAD_SECONDS ?? 15);
const concurrency = 16;
const data = tempDir('satchel-load-');
const server = new Server(data);
const users = ['ada', 'grace'];

before(async () => { await server.start(); });
after(async () => {
  const { code } = await server.kill('SIGTERM');
  remove(data);
  assert.equal(code, 0, `serve ends cleanly:\n${server.output}`);
});

async function hammer(user) {
  const { token } = satchel(data, 'token', 'create', '--user', user);
  const acknowledged = [];
  const end = Date.now() + seconds * 1000;
  await Promise.all(Array.from({ length: concurrency }, async (_, worker) => {
    const c = await sdkV2(server.url, token);
    try {
      for (let n = 0; Date.now() < end; n++) {
        const path = `knowledge/load/${user}-${worker}-${n}.txt`;
        const body = `${user} ${worker} ${n}`;
        const r = await c.call('bash', { command: `mkdir -p knowledge/load && echo '${body}' > ${path} && cat ${path}` });
        const text = r.content[0].text;
        assert.ok(!r.isError, text);
        const meta = r._meta['satchel/result'];
        assert.equal(meta.exit_code, 0, text);
        assert.match(meta.commit, /^[0-9a-f]{40}$/, text);
        assert.ok(text.startsWith(body), text);
        acknowledged.push({ path, body });
      }
    } finally {
      await c.close();
    }
  }));
  return acknowledged;
}

test(`${users.length} users, ${concurrency} calls at once each, ${seconds} s`, { timeout: (seconds + 120) * 1000 }, async (t) => {
  for (const u of users) satchel(data, 'user', 'add', u);
  const results = await Promise.all(users.map(hammer));
  const spaces = satchel(data, 'space', 'list');
  users.forEach((user, i) => {
    const { repository } = spaces.find((s) => s.owner === user);
    const files = new Map(git(repository, 'ls-tree', '-r', 'HEAD', 'knowledge/load/')
      .split('\n').map((l) => { const [head, path] = l.split('\t'); return [path, head.split(' ')[2]]; }));
    for (const { path, body } of results[i]) {
      assert.ok(files.has(path), `${user}'s acknowledged ${path} is in their repository`);
      const content = Buffer.from(`${body}\n`);
      const want = createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
      assert.equal(files.get(path), want, `${path} has what was written`);
    }
    const foreign = [...files.keys()].filter((p) => !p.startsWith(`knowledge/load/${user}-`));
    assert.deepEqual(foreign, [], `nothing of another user's is in ${user}'s repository`);
    t.diagnostic(`${user}: ${results[i].length} acknowledged writes`);
    assert.ok(results[i].length > concurrency, `${user} got through ${results[i].length} calls`);
  });
});
