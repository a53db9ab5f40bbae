// What the protocol promises beyond the conformance suite, with real clients: notifications of
// changes, and schemas that every client accepts.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { inspector, satchelStdio, sdkV1, sdkV2, sdkV2Modern } from './lib/clients.mjs';
import { Server, remove, satchel, tempDir } from './lib/server.mjs';
import { until } from './lib/until.mjs';

const data = tempDir('satchel-protocol-');
const server = new Server(data);
let key;

before(async () => {
  await server.start();
  key = server.firstKey();
});
after(async () => {
  await server.kill('SIGTERM');
  remove(data);
});

const resource = (name) => [`resources/${name}.md`, `---\ntitle: One\n---\n\nOne\n`];
const skill = (name) => [`skills/${name}/SKILL.md`, `---\nname: ${name}\ndescription: Does ${name}.\nuser-invocable: true\n---\n\nDo it.\n`];

// put writes a file through the REST API.
async function put(path, content) {
  const r = await fetch(server.url.replace(/mcp$/, 'api/files'), {
    method: 'PUT',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ path, content }),
  });
  assert.equal(r.status, 200, await r.text());
}

// subscribe subscribes to a resource and to the lists, as the client's version does.
const inSession = (client, uri) => client.subscribeResource({ uri });
const byListening = (client, uri) => client.listen({ promptsListChanged: true, resourcesListChanged: true, resourceSubscriptions: [uri] });

for (const [name, connect, subscribe] of [
  ['TypeScript SDK 1 (2025-11-25)', () => sdkV1(server.url, key), inSession],
  ['TypeScript client 2 (2025-11-25)', () => sdkV2(server.url, key), inSession],
  ['TypeScript client 2 (2026-07-28)', () => sdkV2Modern(server.url, key), byListening],
  ['satchel stdio', () => satchelStdio(data), inSession],
]) {
  test(`${name} is notified of the changes of others`, async () => {
    const slug = name.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
    const [path, text] = resource(slug);
    await put(path, text);
    const c = await connect();
    const other = await sdkV2(server.url, key);
    try {
      const got = [];
      c.client.fallbackNotificationHandler = async (n) => { got.push([n.method, n.params?.uri].filter(Boolean).join(' ')); };
      const gets = (want) => until(() => `${want} in ${got}`, () => got.includes(want));
      await subscribe(c.client, `satchel://${path}`);

      const edited = await other.call('edit', { path, edits: [{ old: 'One', new: 'Two', all: true }] });
      assert.ok(!edited.isError, JSON.stringify(edited));
      await gets(`notifications/resources/updated satchel://${path}`);
      await gets('notifications/resources/list_changed');
      assert.deepEqual(got.filter((n) => n.startsWith('notifications/prompts')), []);

      await put(...skill(slug));
      await gets('notifications/prompts/list_changed');
      const { prompts } = await c.client.listPrompts();
      assert.ok(prompts.some((p) => p.name === slug), `${slug} in ${prompts.map((p) => p.name)}`);
    } finally {
      await Promise.all([c.close(), other.close()]);
    }
  });
}

test('a key that was revoked receives nothing more', async () => {
  const { id, token } = satchel(data, 'token', 'create', '--user', 'admin', '--name', 'short');
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const hello = await fetch(server.url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'e2e', version: '1' } } }) });
  const stream = await fetch(server.url, { headers: { ...headers, 'Mcp-Session-Id': hello.headers.get('mcp-session-id') } });
  assert.equal(stream.status, 200);
  satchel(data, 'token', 'revoke', id);
  await put(...resource('after'));
  assert.doesNotMatch(await stream.text(), /list_changed/);
});

describe('the Inspector has nothing to say', () => {
  for (const era of ['legacy', 'modern']) {
    test(`about the tools (${era})`, async () => {
      assert.equal(await inspector(server.url, key, era).warnings(), '');
    });
    // ChatGPT sees its own search and fetch, which are the only tools with output schemas.
    test(`about the tools that ChatGPT sees (${era})`, async () => {
      const { token } = satchel(data, 'token', 'create', '--user', 'admin', '--name', 'https://chatgpt.com/');
      const inspect = inspector(server.url, token, era);
      assert.ok((await inspect.tools()).some((t) => t.name === 'fetch' && t.outputSchema));
      assert.equal(await inspect.warnings(), '');
    });
  }
});
