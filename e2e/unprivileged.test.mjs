// The server as an ordinary user: the sandbox starts through the runtime child
// in a user namespace, with everything that a root server's has.
import assert from 'node:assert/strict';
import { chmodSync, chownSync, copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sdkV2 } from './lib/clients.mjs';
import { Server, binary, remove, satchelAs, tempDir } from './lib/server.mjs';

// Where the tests run as root the server runs as nobody.
const ids = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
const home = tempDir('satchel-user-');
const program = join(home, 'satchel');
const data = join(home, 'data');
let server;

before(async () => {
  copyFileSync(binary, program);
  chmodSync(program, 0o755);
  mkdirSync(data);
  if (ids.uid) for (const d of [home, data]) chownSync(d, ids.uid, ids.gid);
  server = new Server(data, { program, spawnOptions: { ...ids, cwd: home }, env: { HOME: home } });
  await server.start();
});

after(async () => {
  const { code } = await server.kill('SIGTERM');
  remove(home);
  assert.equal(code, 0, server.output);
});

test('bash runs in the sandbox, and what it writes is committed', async () => {
  const { token } = satchelAs({ program, ...ids, cwd: home, env: { ...process.env, HOME: home } }, data, 'token', 'create', '--user', 'admin');
  const c = await sdkV2(server.url, token);
  try {
    const r = await c.call('bash', { command: 'id -u; echo hello > knowledge/hello.md; dmesg | head -1; unshare -Urm true; echo $?' });
    const text = r.content[0].text;
    assert.match(text, /^(stdout:\n)?1000\n/);
    assert.match(text, /Operation not permitted/);
    assert.match(r._meta['satchel/result'].commit, /^[0-9a-f]{40}$/, text);
    const log = await c.call('bash_readonly', { command: 'git log --oneline | wc -l; git status --short; echo x > knowledge/hello.md' });
    assert.match(log.content[0].text, /^(stdout:\n)?2\n/);
    assert.match(log.content[0].text, /Read-only file system|Permission denied/);
  } finally {
    await c.close();
  }
});

test('doctor finds the sandbox working', () => {
  const report = satchelAs({ program, ...ids, cwd: home, env: { ...process.env, HOME: home } }, data, 'doctor');
  assert.equal(report.sandbox, true, JSON.stringify(report, null, 1));
});
