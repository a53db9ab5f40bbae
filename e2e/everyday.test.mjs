// What happens on ordinary days: long commands tell how they go on, can be
// cancelled, become jobs, meet their limits; keys that only read; too many
// requests; a stop in the middle of a command.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sdkV1, sdkV2Modern } from './lib/clients.mjs';
import { git } from './lib/git.mjs';
import { Server, remove, satchel, tempDir } from './lib/server.mjs';
import { until } from './lib/until.mjs';

const data = tempDir('satchel-everyday-');
const server = new Server(data, {
  env: {
    SATCHEL_SANDBOX_DETACH_AFTER: '5s', SATCHEL_SANDBOX_PROCESSES: '24',
    SATCHEL_SANDBOX_MEMORY: '256MiB', SATCHEL_SANDBOX_DISK: '64MiB',
  },
});
let key;
let bash;
let client;

const meta = (r) => r._meta?.['satchel/result'] ?? {};
const text = (r) => r.content.map((c) => c.text ?? '').join('\n');

before(async () => {
  await server.start();
  key = server.firstKey();
  client = await sdkV1(server.url, key);
  bash = (command, args = {}) => client.call('bash', { command, ...args });
});

after(async () => {
  await client.close();
  if (server.process.exitCode === null) await server.kill('SIGTERM');
  remove(data);
});

test('a first command tells that its sandbox starts, and a long one its newest line', async () => {
  const said = [];
  const r = await client.client.callTool({ name: 'bash', arguments: { command: 'for i in 1 2 3 4; do echo step $i; sleep 0.4; done' } },
    undefined, { onprogress: (p) => said.push(p) });
  assert.match(text(r), /step 4/);
  assert.ok(said.some((p) => /Starting/.test(p.message)), JSON.stringify(said));
  assert.ok(said.some((p) => /step \d/.test(p.message)), JSON.stringify(said));
  for (let i = 1; i < said.length; i++) assert.ok(said[i].progress > said[i - 1].progress, 'progress increases');
});

for (const [era, connect] of [['2025-11-25', sdkV1], ['2026-07-28', sdkV2Modern]]) {
  test(`cancelling ends the command (${era})`, async () => {
    const c = await connect(server.url, key);
    try {
      const stop = new AbortController();
      const mark = `marker-${era}`;
      const call = c.client.callTool({ name: 'bash', arguments: { command: `exec -a ${mark} sleep 300` } },
        ...(era === '2025-11-25' ? [undefined, { signal: stop.signal }] : [{ signal: stop.signal }]));
      call.catch(() => {});
      const running = async () => /[1-9]/.test(text(await client.call('bash_readonly', { command: `pgrep -cf '^${mark}' || true` })).split('\n')[0]);
      await until('the command runs', running);
      stop.abort();
      await assert.rejects(call);
      await until('the command has ended', async () => !(await running()));
    } finally {
      await c.close();
    }
  });
}

test('a command that outlasts its welcome goes on as a job and is committed at its end', async () => {
  const r = await bash('echo begun; sleep 8; echo late > knowledge/late.md', { comment: 'Write it late' });
  assert.match(text(r), /begun/);
  const { job } = meta(r);
  assert.ok(job, text(r));
  await until('the job is committed', async () => {
    const log = await client.call('bash_readonly', { command: 'git log -1 --format=%s -- knowledge/late.md' });
    return text(log).startsWith('Write it late');
  });
});

test('a time limit ends the whole process tree', async () => {
  const dir = tempDir('satchel-time-limit-');
  const limited = new Server(dir, { env: { SATCHEL_SANDBOX_DETACH_AFTER: '2s', SATCHEL_SANDBOX_WALL_TIME: '5s' } });
  let c;
  try {
    await limited.start();
    c = await sdkV1(limited.url, limited.firstKey());
    const r = await c.call('bash', { command: '(setsid sleep 301 &) ; sleep 302', background: true });
    assert.ok(meta(r).job, text(r));
    await until('nothing of it is left', async () =>
      text(await c.call('bash_readonly', { command: "pgrep -cf 'sleep 30[12]' || true" })).startsWith('0'));
  } finally {
    await c?.close();
    await limited.kill('SIGTERM');
    remove(dir);
  }
});

test('memory without end is told in plain words, and the next command works', async () => {
  const r = await bash("python3 -c \"x = ['a' * 1048576 + str(i) for i in range(4096)]\"");
  assert.match(text(r), /memory/i);
  assert.equal(text(await bash('echo still here')).split('\n')[0], 'still here');
});

test('where a job holds every process, the answer names the job and how to stop it', async () => {
  // It takes each process that becomes free as well, until it is stopped.
  const job = meta(await bash(`exec python3 -c '
import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(3600)
    except OSError: time.sleep(0.05)'`, { background: true })).job.id;
  await until('the job holds them all', async () => /fork/.test(text(await bash('/bin/true; /bin/true'))));
  const r = await bash('/bin/true; /bin/true');
  assert.match(text(r), new RegExp(`kill -- -\\$\\(cat /run/satchel/jobs/${job}/pid\\)`));
  await bash(`kill -- -$(</run/satchel/jobs/${job}/pid)`);
  await until('commands run again', async () => meta(await bash('/bin/true; /bin/true')).exit_code === 0);
});

test('a full disk is told, and the next command works', async () => {
  const r = await bash('for i in 1 2 3 4 5 6; do dd if=/dev/zero of=knowledge/big$i bs=1M count=20; done; rm -f knowledge/big?');
  assert.match(text(r), /No space left on device/);
  const next = await bash('echo ok > knowledge/ok.md');
  assert.match(meta(next).commit, /^[0-9a-f]{40}$/, text(next));
});

test('endless output is cut, and says where the rest is', async () => {
  const r = await bash('seq 1 400000');
  const t = text(r);
  assert.ok(t.length < 32_000, `${t.length} characters`);
  assert.match(t, /^1\n2\n3\n/);
  assert.match(t, /400000\n/);
  const saved = t.match(/\/run\/satchel\/\S+/)?.[0];
  assert.ok(saved, t.slice(14_000, 16_000));
  assert.match(text(await bash(`sed -n 250000p ${saved.replace(/[.,\]]$/, '')} | head -1; wc -l < ${saved.replace(/[.,\]]$/, '')}`)), /\d{4,}/);
});

test('a key that only reads is offered no bash, and is told which scope it lacks', async () => {
  const { token } = satchel(data, 'token', 'create', '--user', 'admin', '--scope', 'read');
  const c = await sdkV1(server.url, token);
  try {
    const names = (await c.tools()).map((t) => t.name);
    assert.ok(names.includes('bash_readonly') && !['bash', 'write', 'edit'].some((n) => names.includes(n)), names.join());
  } finally {
    await c.close();
  }
  const res = await fetch(server.url, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'bash',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'bash', arguments: { command: 'true' }, _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}, 'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' } } } }),
  });
  assert.equal(res.status, 403);
  assert.match(res.headers.get('www-authenticate'), /insufficient_scope.*scope="read write"|scope="read write".*insufficient_scope/);
});

test('a revoked key ends at once', async () => {
  const { id, token } = satchel(data, 'token', 'create', '--user', 'admin');
  const c = await sdkV1(server.url, token);
  await c.tools();
  satchel(data, 'token', 'revoke', id);
  await assert.rejects(c.tools(), /401|Unauthorized|revoked/i);
});

test('SIGTERM lets a command end, commits what it did, and answers', async () => {
  const pending = bash("trap 'echo graceful > knowledge/last.md; exit 0' TERM; echo go; while :; do sleep 0.05; done", { comment: 'The last words' });
  await until('the command runs', async () => text(await client.call('bash_readonly', { command: "pgrep -cf 'sleep 0.05' || true" })).startsWith('1'));
  const { code } = await server.kill('SIGTERM');
  assert.equal(code, 0, server.output);
  const r = await pending.catch((e) => e);
  assert.ok(!(r instanceof Error), String(r));
  const { repository } = satchel(data, 'space', 'list')[0];
  assert.match(git(repository, 'log', '-1', '--format=%s', 'HEAD', '--', 'knowledge/last.md'), /The last words/);
});
