// The protocol's own conformance suite for authorization servers, against the
// real binary: its metadata, and a whole grant with a person who consents.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { cleanup, Person, serve } from './lib/oauth.mjs';
import { freePorts, remove, tempDir } from './lib/server.mjs';

const suite = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const later = cleanup();
let s;
let person;

before(async () => {
  s = await serve(later);
  person = new Person(s.issuer);
  await person.signIn(s.link());
});

after(later.run);

// arrive goes back to the suite, which tells where to go before it listens.
async function arrive(to, child) {
  for (;;) {
    try {
      return await fetch(to);
    } catch (e) {
      if (e.cause?.code !== 'ECONNREFUSED' || child.exitCode !== null) throw e;
      await setTimeout(20);
    }
  }
}

// conform runs the suite as a client, and goes where it says that a browser
// should.
async function conform(client, port) {
  const out = tempDir('satchel-authorization-');
  try {
    const child = spawn(process.execPath, [suite, 'authorization', '--url', s.issuer, '--client-id', client, '--resource', s.mcp, '-p', String(port), '-o', out],
      { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let visited;
    const read = (text) => {
      output += text;
      const url = /http:\/\/localhost:\d+\/oauth\/authorize\?\S+(?=\s)/.exec(output)?.[0];
      if (url && !visited) visited = person.consent(url).then((to) => arrive(to, child)).catch((e) => { child.kill(); throw e; });
    };
    child.stdout.setEncoding('utf8').on('data', read);
    child.stderr.setEncoding('utf8').on('data', read);
    const [code] = await once(child, 'close');
    await visited;
    const checks = readdirSync(out, { recursive: true }).filter((f) => f.endsWith('.json'))
      .flatMap((f) => JSON.parse(readFileSync(join(out, f), 'utf8'))).flatMap((r) => r.checks ?? r).filter((c) => c.status);
    return { code, output, checks };
  } finally {
    remove(out);
  }
}

const ways = {
  'a client that registered itself': async (redirect) => {
    const r = await fetch(`${s.issuer}/oauth/register`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ client_name: 'Conformance', redirect_uris: [redirect], token_endpoint_auth_method: 'none' }),
    });
    assert.equal(r.status, 201);
    return (await r.json()).client_id;
  },
  'a client that the admin added': (redirect) => s.run('client', 'add', 'Conformance', '--redirect', redirect).id,
  'a client with a metadata document': () => 'https://claude.ai/oauth/claude-code-client-metadata',
};

for (const [name, introduce] of Object.entries(ways)) {
  test(`authorization conformance of ${name}`, async (t) => {
    const [port] = await freePorts(1);
    const { code, output, checks } = await conform(await introduce(`http://127.0.0.1:${port}/callback`), port);
    t.diagnostic(checks.map((c) => `${c.status} ${c.id}`).join(', '));
    assert.equal(code, 0, output);
    assert.deepEqual(checks.filter((c) => c.status !== 'SUCCESS'), [], output);
    assert.deepEqual(checks.map((c) => c.id).sort(), ['authorization-code-grant', 'authorization-server-metadata', 'authorization-server-metadata-cimd'], output);
  });
}
