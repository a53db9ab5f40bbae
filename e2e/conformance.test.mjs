// The protocol's own conformance suite against the real binary, built with the
// fixtures that the suite asks for: every required scenario of both eras.
import { spawnSync } from 'node:child_process';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Server, remove, tempDir } from './lib/server.mjs';

const data = tempDir('satchel-conformance-');
const server = new Server(data, {
  program: join(import.meta.dirname, '../bin/satchel-conformance'),
  // The suite asks faster than a user may.
  env: { SATCHEL_SERVER_RATE: '10000' },
});

before(async () => { await server.start(); });
after(async () => {
  await server.kill('SIGTERM');
  remove(data);
});

test('30 of 30 for 2025-11-25 and 37 of 37 for 2026-07-28', (t) => {
  const run = spawnSync(join(import.meta.dirname, 'conformance/run.sh'), [server.url, server.firstKey()], { encoding: 'utf8' });
  t.diagnostic(run.stdout);
  assert.equal(run.status, 0, run.stdout + run.stderr);
  assert.match(run.stdout, /2025-11-25: 30 of 30/);
  assert.match(run.stdout, /2026-07-28: 37 of 37/);
});
