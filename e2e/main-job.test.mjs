// The main job, end to end, with the real binary and real clients: a repository
// is imported; every client lists the tools, is instructed, searches, reads and
// runs bash; what bash wrote is a commit in the sandbox and in the bare
// repository; the server is killed; everything is still there.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { inspector, mcpRemote, satchelStdio, sdkV1, sdkV2, sdkV2Modern } from './lib/clients.mjs';
import { makeRepository } from './lib/corpus.mjs';
import { git } from './lib/git.mjs';
import { Server, remove, satchel, tempDir } from './lib/server.mjs';
import { until } from './lib/until.mjs';

const page = 'docs/4.api/2.composables/use-async-data.md';
const data = tempDir('satchel-e2e-data-');
const repository = tempDir('satchel-e2e-repo-');
const server = new Server(data);
let key;

const meta = (result) => result._meta?.['satchel/result'] ?? {};
const text = (result) => result.content.map((c) => c.text ?? '').join('\n');

// bareRepositories lists the bare repositories of the data directory.
function bareRepositories() {
  const root = join(data, 'spaces');
  return readdirSync(root).filter((n) => n.endsWith('.git')).map((n) => join(root, n));
}

// indexed waits until search answers from a commit. Search itself never waits.
async function indexed(commit) {
  const c = await sdkV2(server.url, key);
  try {
    let at;
    await until(() => `the index is at ${at}, not ${commit}`, async () => {
      at = (await c.call('search', { query: 'anything' }))._meta['satchel/result'].index_commit;
      return at === commit;
    });
  } finally {
    await c.close();
  }
}

before(async () => {
  const corpus = makeRepository(repository);
  await server.start();
  key = server.firstKey();
  const imported = satchel(data, 'space', 'import', repository, '--user', 'admin');
  assert.ok(imported.files > 100, `imported ${imported.files} files of the ${corpus.kind} corpus`);
  await indexed(imported.commit);
});

after(async () => {
  await server.kill('SIGTERM');
  remove(data);
  remove(repository);
});

const clients = {
  'TypeScript SDK 1 (2025-11-25)': () => sdkV1(server.url, key),
  'TypeScript client 2 (2025-11-25)': () => sdkV2(server.url, key),
  'TypeScript client 2 (2026-07-28)': () => sdkV2Modern(server.url, key),
  'mcp-remote': () => mcpRemote(server.url, key),
  'satchel stdio': () => satchelStdio(data),
  'Inspector (legacy)': () => inspector(server.url, key, 'legacy'),
  'Inspector (modern)': () => inspector(server.url, key, 'modern'),
};

const notes = [];

for (const [name, connect] of Object.entries(clients)) {
  describe(name, () => {
    const slug = name.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
    const note = `knowledge/notes-${slug}.md`;
    const word = `zebra${slug.replaceAll('-', '')}`;
    let c;
    before(async () => { c = await connect(); });
    after(async () => { await c?.close(); });

    test('lists the tools', async () => {
      const names = (await c.tools()).map((t) => t.name).sort();
      for (const want of ['bash', 'bash_readonly', 'edit', 'instructions', 'read', 'remember', 'search', 'write']) assert.ok(names.includes(want), `${want} in ${names}`);
    });

    test('is told what it should know', async () => {
      const r = await c.call('instructions', {});
      assert.match(text(r), /resources\/instructions\.md|Instructions/i);
      assert.match(text(r), new RegExp(String(new Date().getFullYear())));
    });

    test('finds the page of useAsyncData first', async () => {
      const r = await c.call('search', { query: 'useAsyncData' });
      assert.equal(meta(r).results[0].path, page);
      assert.match(text(r), new RegExp(`^1\\. ${page}:`, 'm'));
    });

    test('reads it', async () => {
      const r = await c.call('read', { paths: [page] });
      assert.match(text(r), /useAsyncData/);
    });

    test('greps, writes a note and is told its commit, which git shows', async () => {
      const r = await c.call('bash', {
        command: `grep -rl useAsyncData docs | grep use-async-data.md && printf '# Notes\\n\\nThe ${word} was here.\\n' > ${note}`,
        comment: `Note from ${name}`,
      });
      assert.ok(!r.isError, text(r));
      assert.equal(meta(r).exit_code, 0);
      assert.ok(text(r).startsWith(page), text(r));
      const commit = meta(r).commit;
      assert.match(commit ?? '', /^[0-9a-f]{40}$/, text(r));
      assert.ok(text(r).includes(commit.slice(0, 7)), 'the text names the commit');

      const log = await c.call('bash_readonly', { command: `git log --format='%H %s' -1 -- ${note} && git status --short` });
      assert.equal(text(log).split('\n')[0], `${commit} Note from ${name}`);
      assert.ok(bareRepositories().some((dir) => {
        try { return git(dir, 'log', '--format=%H', '-1', 'HEAD', '--', note) === commit; } catch { return false; }
      }), 'the bare repository has the commit');
      notes.push({ note, word, commit });
    });

    test('writes and edits a note without a shell, and bash sees it', async () => {
      const path = `knowledge/plain-${slug}.md`;
      const written = await c.call('write', { path, content: '# Plain\n\nOne.\n' });
      assert.ok(!written.isError, text(written));
      const edited = await c.call('edit', { path, edits: [{ old: 'One.', new: 'Two.' }] });
      assert.ok(text(edited).includes('-One.\n+Two.'), text(edited));
      const stale = await c.call('write', { path, content: 'lost', base_etag: meta(written).etag });
      assert.ok(stale.isError && text(stale).includes(meta(edited).etag), text(stale));
      const seen = await c.call('bash_readonly', { command: `tail -n 1 ${path}; git log --format=%H -1 -- ${path}` });
      assert.deepEqual(text(seen).split('\n').slice(0, 2), ['Two.', meta(edited).commit]);
    });

    test('cannot write with bash_readonly', async () => {
      const r = await c.call('bash_readonly', { command: 'echo x > knowledge/sneaky.md; echo code=$?' });
      assert.match(text(r), /Read-only file system/);
    });

    test('is told of bad arguments', async () => {
      const r = await c.call('read', { path: [page] }).catch((e) => e);
      assert.match(r instanceof Error ? r.message : text(r), /paths/);
    });
  });
}

test('skills pass the Inspector\'s verification', async () => {
  await inspector(server.url, key, 'modern').verifySkills();
});

test('after kill -9 every note is there and search finds it', async () => {
  assert.equal(notes.length, Object.keys(clients).length);
  await server.kill('SIGKILL');
  await server.start();
  await indexed(satchel(data, 'space', 'list')[0].head);
  const c = await sdkV2(server.url, key);
  try {
    for (const { note, word, commit } of notes) {
      const found = await c.call('search', { query: word });
      assert.equal(meta(found).results[0]?.path, note);
      assert.match(text(await c.call('read', { paths: [note] })), new RegExp(word));
      const log = await c.call('bash', { command: `git log --format=%H -1 -- ${note}` });
      assert.equal(text(log).split('\n')[0].trim(), commit);
    }
  } finally {
    await c.close();
  }
  for (const dir of bareRepositories()) git(dir, 'fsck', '--strict');
});
