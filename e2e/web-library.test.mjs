// One person publishes a directory of their space in a browser; another's client
// finds it by search, reads it and greps it in bash, and somebody whom it is not
// for finds nothing by any of these. Once it is taken back it is gone, from the
// sandbox that runs as well. Every page on the way is judged by axe.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open } from './lib/browser.mjs';
import { sdkV1 } from './lib/clients.mjs';
import { cleanup, serve } from './lib/oauth.mjs';
import { until } from './lib/until.mjs';

const text = (r) => r.content.map((c) => c.text ?? '').join('\n');

describe('the library, from one person to another', { skip: missing }, () => {
  const later = cleanup();
  const people = [];
  let s;
  let browser;
  let ada; // pages
  let bob;
  const clients = {};
  const tokens = {};

  const person = async (name, options = {}) => {
    const p = await open(browser, { baseURL: s.issuer, ...options });
    people.push(p);
    await p.page.goto(name === 'admin' ? s.link() : s.link('--user', name));
    await p.page.getByRole('button', { name: /^sign in/i }).first().click();
    await p.page.waitForURL((u) => !u.pathname.startsWith('/signin'));
    return p.page;
  };
  const button = (page, name) => page.getByRole('button', { name, exact: true });
  const heading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();
  const found = async (who, query) => {
    const r = await clients[who].call('search', { query });
    assert.ok(!r.isError, text(r));
    return (r._meta['satchel/result'].results ?? []).map((h) => h.path);
  };
  const bash = async (who, command) => text(await clients[who].call('bash_readonly', { command }));
  const expectError = (status) => {
    for (const p of people) p.complaints = p.complaints.filter((c) => !c.includes(`status of ${status}`));
  };

  before(async () => {
    s = await serve(later, { env: { SATCHEL_SANDBOX_RUNTIME: 'gvisor' } });
    browser = await launch(later);
    clients.ada = await sdkV1(s.mcp, s.server.firstKey());
    for (const name of ['bob', 'eve']) {
      s.run('user', 'add', name);
      tokens[name] = s.run('token', 'create', '--user', name).token;
      clients[name] = await sdkV1(s.mcp, tokens[name]);
    }
    later(() => Promise.all(Object.values(clients).map((c) => c.close())));
    const r = await clients.ada.call('bash', {
      command: `mkdir -p knowledge/team && printf -- '---\\ntitle: How we deploy\\ndescription: Steps of a release on Fridays.\\n---\\n\\n# How we deploy\\n\\nCall the zeppelin captain before every release.\\n' > knowledge/team/deploy.md
printf '# Team\\n\\nStart with [deploying](deploy.md).\\n' > knowledge/team/README.md
printf 'nobody else may know the word quixotic\\n' > knowledge/diary.md
mkdir -p memory/person; printf 'Likes airships.\\n' > memory/person/likes.md
ln -s ../diary.md knowledge/team/leak.md; ln -s deploy.md knowledge/team/release.md`, comment: 'Write what the team needs',
    });
    assert.ok(!r.isError, text(r));
    // Sandboxes that run already when it is published.
    for (const name of ['bob', 'eve']) assert.match(await bash(name, 'ls -A /library/docs | wc -l'), /^0/m);
  });

  after(async () => {
    await later.run();
    assert.deepEqual(people.flatMap((p) => p.complaints), []);
  });

  test('nothing is shared at first', async () => {
    bob = await person('bob');
    await bob.goto('/library');
    await heading(bob, 'Sources');
    await judge(bob, 'library-empty');
  });

  test('an owner sees what others will, and publishes it for one of them', async () => {
    ada = await person('admin');
    await ada.goto('/library');
    await ada.getByRole('link', { name: /Publish from/ }).click();
    await heading(ada, 'Publishing');
    await judge(ada, 'library-publish');
    await ada.goto(`${ada.url()}?dir=nowhere`);
    await ada.getByRole('alert').waitFor();
    await judge(ada, 'library-publish-problem');
    expectError(400);
    await ada.getByLabel('Directory', { exact: true }).selectOption('memory');
    await button(ada, 'Preview').click();
    await ada.getByText('holds what your AIs remember about you').waitFor();
    await judge(ada, 'library-publish-memory');
    await ada.goBack();
    await ada.getByLabel('Directory', { exact: true }).selectOption('knowledge/team');
    await button(ada, 'Preview').click();
    await ada.getByRole('heading', { name: 'What readers will see of knowledge/team/' }).waitFor();
    await ada.getByText('3 files').waitFor();
    await judge(ada, 'library-preview');
    await ada.getByText('More settings').click();
    await ada.getByLabel('ID', { exact: true }).fill('team');
    await ada.getByLabel('Title').fill('How we work');
    await ada.getByLabel('Description').fill('What everybody in the team does the same way.');
    await ada.getByLabel('Only you, and people whom you name').check();
    await ada.getByLabel('Their user names').fill('bob');
    await button(ada, 'Publish').click();
    await ada.getByText('for you and bob').waitFor();
    await judge(ada, 'library-published');
  });

  test('another person reads it in a browser', async () => {
    await bob.goto('/library');
    await judge(bob, 'library-shared');
    await bob.getByRole('link', { name: 'How we work', exact: true }).click();
    await heading(bob, 'How we work');
    await judge(bob, 'library-source');
    await bob.getByRole('link', { name: 'deploy.md', exact: true }).click();
    await bob.getByText('Call the zeppelin captain').waitFor();
    await judge(bob, 'library-page');
  });

  test("another's client finds it, reads it and greps it", async () => {
    await until('the index has it', async () => (await found('bob', 'zeppelin')).includes('/library/docs/team/deploy.md'));
    assert.deepEqual(await found('bob', 'source:team zeppelin'), ['/library/docs/team/deploy.md']);
    assert.match(text(await clients.bob.call('read', { paths: ['/library/docs/team/deploy.md'] })), /zeppelin captain/);
    assert.match(text(await clients.bob.call('read', { paths: ['/library/docs/team/release.md'] })), /zeppelin captain/);
    assert.match(text(await clients.bob.call('read', { paths: ['/library/docs/'] })), /team\/ \(How we work/);
    assert.match(text(await clients.bob.call('fetch', { id: '/library/docs/team/deploy.md#how-we-deploy' })), /zeppelin captain/);
    assert.match(text(await clients.bob.call('instructions', {})), /\/library\/docs\/team\/: How we work — What everybody in the team/);
    assert.match(await bash('bob', 'grep -rn zeppelin /library'), /\/library\/docs\/team\/deploy\.md:.*zeppelin/);
    assert.match(await bash('bob', 'echo x > /library/docs/team/deploy.md; touch /library/docs/x; echo done'), /(Permission denied|Read-only file system)[\s\S]*(Permission denied|Read-only file system)/);
  });

  test('nothing outside of the directory can be reached through it', async () => {
    for (const path of ['/library/docs/team/../diary.md', '/library/docs/team/leak.md', '/library/docs/team/../../../etc/passwd', '/library/docs/TEAM/deploy.md']) {
      const r = await clients.bob.call('read', { paths: [path] });
      assert.ok(r.isError, text(r));
      assert.doesNotMatch(text(r), /quixotic/);
    }
    assert.deepEqual(await found('bob', 'quixotic'), []);
    assert.doesNotMatch(await bash('bob', 'grep -rs quixotic /library /space; cat /library/docs/team/leak.md'), /nobody else/);
  });

  test('somebody whom it is not for finds nothing, by any way', async () => {
    assert.deepEqual(await found('eve', 'zeppelin'), []);
    assert.deepEqual(await found('eve', 'source:team captain'), []);
    const searched = await clients.eve.call('search', { query: 'captain', source: 'team' });
    assert.doesNotMatch(text(searched), /How we work|deploy/);
    for (const path of ['/library/docs/team/deploy.md', '/library/docs/team/', '/library/**/*.md']) {
      assert.doesNotMatch(text(await clients.eve.call('read', { paths: [path] })), /zeppelin|deploy\.md \(|How we work/);
    }
    assert.ok((await clients.eve.call('fetch', { id: '/library/docs/team/deploy.md' })).isError);
    assert.doesNotMatch(text(await clients.eve.call('instructions', {})), /How we work|docs\/team/);
    assert.doesNotMatch(await bash('eve', 'ls -laR /library; cat /library/docs/team/deploy.md'), /zeppelin|deploy\.md$/m);
    for (const [who, sees] of [['eve', false], ['bob', true]]) {
      const api = async (path, body) => {
        const r = await fetch(`${s.issuer}/api${path}`, {
          method: body ? 'POST' : 'GET', body: body && JSON.stringify(body),
          headers: { Authorization: `Bearer ${tokens[who]}`, ...(body && { 'Content-Type': 'application/json' }) },
        });
        return `${r.status} ${await r.text()}`;
      };
      for (const answer of [
        await api('/sources'), await api('/sandbox/search', { query: 'zeppelin captain' }), await api('/sandbox/read', { paths: ['docs/team/deploy.md'] }),
        await api('/sandbox/shell', { command: 'cat /library/docs/team/deploy.md' }),
      ]) {
        assert.equal(/zeppelin captain|How we work/.test(answer.replace(/"(query|scope)":"[^"]*"/g, '')), sees, `${who}: ${answer}`);
      }
      assert.match(await fetch(`${s.issuer}/api/sync/team`, { method: 'POST', headers: { Authorization: `Bearer ${tokens[who]}` } }).then((r) => `${r.status}`), sees ? /^202/ : /^404/);
    }
    const eve = await person('eve', { javaScriptEnabled: false });
    for (const path of ['/library/docs/team/', '/library/docs/team/deploy.md', '/library/raw/team/deploy.md']) {
      assert.equal((await eve.goto(path)).status(), 404);
    }
    expectError(404);
    await eve.goto('/library');
    assert.equal(await eve.getByText('How we work').count(), 0);
  });

  test('what is committed appears where it is read, without a restart of the sandbox', async () => {
    await clients.ada.call('bash', { command: 'echo "The airship is called Norge." > knowledge/team/airship.md; rm knowledge/team/README.md', comment: 'Name the airship' });
    await until('the sandbox sees it', async () => /Norge/.test(await bash('bob', 'cat /library/docs/team/airship.md')));
    assert.doesNotMatch(await bash('bob', 'ls /library/docs/team'), /README/);
    await until('search finds it', async () => (await found('bob', 'airship')).includes('/library/docs/team/airship.md'));
  });

  test('once it is taken back it is gone', async () => {
    await ada.goto('/library');
    await ada.getByRole('link', { name: /Publish from/ }).click();
    await button(ada, 'Unpublish How we work').click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Unpublish' }).click();
    await ada.getByText('Nothing of this space is published.').waitFor();
    assert.deepEqual(await found('bob', 'zeppelin'), []);
    assert.ok((await clients.bob.call('read', { paths: ['/library/docs/team/deploy.md'] })).isError);
    assert.doesNotMatch(text(await clients.bob.call('instructions', {})), /How we work/);
    assert.doesNotMatch(await bash('bob', 'find /library; cat /library/docs/team/deploy.md'), /deploy\.md$|zeppelin/m);
    assert.equal((await bob.goto('/library/docs/team/')).status(), 404);
    expectError(404);
  });

  test('the command line publishes, lists and takes back', async () => {
    const made = s.run('source', 'publish', 'notes', '--dir', 'knowledge/team', '--for', 'bob', '--title', 'Notes');
    assert.deepEqual([made.id, made.everybody, made.readers, made.state], ['notes', false, ['bob'], 'ready']);
    assert.deepEqual(s.run('source', 'list', '--user', 'bob').map((x) => x.id), ['notes']);
    assert.deepEqual(s.run('source', 'list', '--user', 'eve'), []);
    assert.match(await bash('bob', 'cat /library/docs/notes/airship.md'), /Norge/);
    // Giving the space away takes it from everybody who read it.
    const [space] = s.run('space', 'list').filter((x) => x.id === made.space);
    s.run('space', 'give', space.id, '--to', 'eve');
    assert.ok((await clients.bob.call('read', { paths: ['/library/docs/notes/airship.md'] })).isError);
    await until('the running sandbox has it no more', async () => !/Norge/.test(await bash('bob', 'cat /library/docs/notes/airship.md')));
    assert.deepEqual(s.run('source', 'list'), []);
  });
});
