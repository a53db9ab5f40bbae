// Repositories at GitHub, as people connect them in a browser: the admin makes the
// App, connects one of theirs, and sees what is saved arrive there; a member has an
// organization's owner approve it; then everything that can go wrong later, and the
// way on from each. GitHub is a stand-in that validates all that is asked of it;
// its git is git's own, behind the tokens that it gave out. All of it with scripts,
// and again without.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open, screenshots } from './lib/browser.mjs';
import { GitHub } from './lib/github.mjs';
import { cleanup, serve } from './lib/oauth.mjs';

for (const javaScriptEnabled of [true, false]) {
  describe(`GitHub in Chromium, ${javaScriptEnabled ? 'with' : 'without'} scripts`, { skip: missing }, () => {
    const later = cleanup();
    let gh, s, browser;
    let ada; // the admin, who has repositories of her own and owns acme
    let bob; // a member of acme
    const opened = [];

    // person opens a browser of somebody's, who is signed in at GitHub and, with a
    // link, here.
    const person = async (login, link) => {
      const p = await open(browser, { baseURL: s.issuer, javaScriptEnabled });
      opened.push(p);
      await gh.signIn(p.page, login);
      if (link) {
        await p.page.goto(link);
        await p.page.getByRole('button', { name: /^sign in/i }).click();
        await p.page.waitForURL((u) => u.origin === s.issuer && !u.pathname.startsWith('/signin'));
      }
      return { ...p, login };
    };

    // here and there wait until the browser is at the server, or at GitHub.
    const here = (page, path) => page.waitForURL((u) => u.origin === s.issuer && (typeof path === 'string' ? u.pathname === path : path.test(u.pathname)));
    const there = (page, path) => page.waitForURL((u) => u.origin === gh.url && path.test(u.pathname));
    // Axe is a script itself, and the pages are the same without.
    const look = (page, name) => javaScriptEnabled ? judge(page, `github-${name}`)
      : page.screenshot({ path: join(screenshots(), `github-${name}-noscript.png`), fullPage: true });
    const press = (page, name) => page.getByRole('button', { name }).click();

    // spaceOf is the path of the first space that a person owns.
    const spaceOf = (user) => {
      const all = s.run('space', 'list');
      const space = (all.spaces ?? all).find((x) => (x.owner?.name ?? x.owner) === user || x.name === user);
      assert.ok(space, JSON.stringify(all));
      return `/spaces/${space.id}`;
    };

    // authorize presses Authorize, or Continue for who did so before.
    const authorize = async (page) => {
      await there(page, /authorize/);
      await page.getByRole('button', { name: /^(authorize|continue)/i }).click();
    };

    // install presses Install at GitHub for an account and one of its repositories.
    const install = async (page, account, repository, button = 'Install') => {
      await there(page, /installations\/new/);
      await page.getByRole('link', { name: account, exact: true }).click();
      if (repository) {
        await page.getByRole('radio', { name: /only select/i }).check();
        await page.getByRole('checkbox', { name: repository }).check();
      }
      await page.getByRole('button', { name: button, exact: true }).click();
    };

    // save makes a file by the page for that.
    const save = async (page, space, path, text) => {
      await page.goto(`${space}/new?path=${encodeURIComponent(path)}`);
      await page.getByLabel('Path').fill(path);
      await page.getByLabel('Text', { exact: true }).fill(text);
      await press(page, 'Create the file');
      await page.waitForURL((u) => !u.pathname.endsWith('/new'));
    };

    before(async () => {
      gh = await GitHub.start(later);
      for (const Login of ['ada', 'bob', 'carol', 'mallory']) await gh.order('person', { Login });
      await gh.order('org', { Login: 'acme', Base: 'read', Members: { ada: 'admin', bob: 'member' } });
      await gh.order('repository', { Owner: 'ada', Name: 'notes', Private: true });
      await gh.order('repository', { Owner: 'ada', Name: 'journal', Private: true });
      await gh.order('repository', { Owner: 'acme', Name: 'handbook', Private: true, Collaborators: { bob: 'write' } });
      await gh.order('repository', { Owner: 'acme', Name: 'payroll', Private: true });
      s = await serve(later, { env: { SATCHEL_AUTH_GITHUB_URL: gh.url, SATCHEL_AUTH_ALLOW_GITHUB_USERS: 'carol' } });
      browser = await launch(later);
      s.run('user', 'add', 'bob');
      ada = await person('ada', s.link());
      bob = await person('bob', s.link('--user', 'bob'));
    });

    after(later.run);

    test('the admin makes the App with one button', async (t) => {
      t.diagnostic(`screenshots are in ${screenshots()}`);
      const { page } = ada;
      await page.goto('/admin/github');
      await look(page, 'app-none');
      // Others install it on their own accounts only if it is public.
      await page.getByRole('checkbox', { name: /other people on this server/i }).check();
      await page.getByRole('checkbox', { name: /let the app create repositories/i }).check();
      await press(page, /create the app at github/i);
      // With scripts the form goes on by itself.
      if (!javaScriptEnabled) {
        await look(page, 'app-leaving');
        await press(page, /^continue to/i);
      }
      await there(page, /settings\/apps\/new/);
      await press(page, 'Create GitHub App');
      await here(page, '/admin/github');
      await look(page, 'app-made');
      assert.match(await page.locator('main').innerText(), /Satchel/);
      const { PrivateKey } = await gh.order('app', { App: await slug() });
      assert.ok(!(await page.content()).includes(PrivateKey.split('\n')[1]), 'the page shows the key');

      // Attack: the same code, or a state of nobody's.
      const used = await page.goto('/admin/github/created?code=x&state=y');
      assert.equal(used.status(), 400);
      ada.complaints.length = 0;
      // Attack: somebody who is no admin.
      const r = await bob.page.goto('/admin/github');
      assert.equal(r.status(), 404);
      bob.complaints.length = 0;
    });

    // slug is the App's.
    const slug = async () => new URL(await ada.page.locator('dl.facts a').first().getAttribute('href')).pathname.split('/').at(-1);

    test('she connects a repository, and what is saved arrives there', async () => {
      const { page } = ada;
      const space = spaceOf('admin');
      await page.goto(`${space}/github`);
      await look(page, 'connect');
      await press(page, /^install the app at github/i);
      await install(page, 'ada', 'ada/notes');
      await authorize(page);
      await here(page, `${space}/github/pick`);
      await look(page, 'pick');
      assert.equal(await page.getByRole('radio', { name: 'ada/journal' }).count(), 0, 'a repository that was not installed');
      await page.getByRole('radio', { name: 'ada/notes' }).check();
      await press(page, /^connect the repository/i);
      await here(page, `${space}/github`);
      await page.getByRole('heading', { level: 1, name: 'Connected to GitHub' }).waitFor();
      await save(page, space, 'knowledge/tea.md', 'Assam, no milk.\n');
      await gh.pushed('ada/notes', 'knowledge/tea.md', 'Assam, no milk.');
      await page.goto(`${space}/github`);
      await look(page, 'connected');

      assert.equal((await gh.installation('ada')).all, false);

      // What somebody pushes there comes here.
      await gh.order('push', { Repo: 'ada/notes', Files: { 'knowledge/cake.md': 'Lemon.\n' } });
      await page.goto(`${space}/remote`);
      await press(page, 'Sync now');
      await page.goto(`${space}/files/knowledge/cake.md`);
      for (let i = 0; i < 100 && !/Lemon/.test(await page.locator('main').innerText()); i++) await page.reload();
      assert.match(await page.locator('main').innerText(), /Lemon/);
      ada.complaints.length = 0; // it was not there at once
    });

    test('an organization approves what a member asks for', async () => {
      const { page } = bob;
      const space = spaceOf('bob');
      await page.goto(`${space}/github`);
      await press(page, /^install the app at github/i);
      await install(page, 'acme', null, 'Request');
      await here(page, `${space}/github`);
      await page.getByRole('heading', { level: 1, name: 'Waiting for approval at GitHub' }).waitFor();
      await look(page, 'waiting');

      // He is impatient: nothing is there yet.
      await press(page, /check for the approval/i);
      await authorize(page);
      await here(page, `${space}/github/pick`);
      await look(page, 'pick-none');
      await page.goto(`${space}/github`);
      await page.getByRole('heading', { level: 1, name: 'Waiting for approval at GitHub' }).waitFor();

      // The owner approves in another browser, which has no account here.
      const owner = await person('ada');
      await owner.page.goto(`${gh.url}/organizations/acme/settings/installation_requests`);
      await owner.page.getByRole('radio', { name: /only select/i }).check();
      await owner.page.getByRole('checkbox', { name: 'acme/handbook' }).check();
      await owner.page.getByRole('button', { name: 'Approve' }).click();
      await here(owner.page, '/github/setup');
      assert.equal(new URL(owner.page.url()).searchParams.get('state'), null);
      await look(owner.page, 'approved');
      await owner.context.close();

      await page.goto(`${space}/github`);
      await page.getByRole('heading', { level: 1, name: 'Waiting for approval at GitHub' }).waitFor();
      await press(page, /check for the approval/i);
      await authorize(page);
      await here(page, `${space}/github/pick`);
      await page.getByRole('radio', { name: 'acme/handbook' }).check();
      await press(page, /^connect the repository/i);
      await page.getByRole('heading', { level: 1, name: 'Connected to GitHub' }).waitFor();
      await save(page, space, 'knowledge/desk.md', 'By the window.\n');
      await gh.pushed('acme/handbook', 'knowledge/desk.md', 'By the window.');
    });

    test('a suspended installation is shown, and goes on afterwards', async () => {
      const { page } = ada;
      const space = spaceOf('admin');
      const { id } = await gh.installation('ada');
      await gh.order('suspend', { Installation: id });
      await page.goto(`${space}/github`);
      await press(page, 'Check now');
      await page.getByRole('heading', { level: 1, name: /suspended/i }).waitFor();
      await look(page, 'suspended');
      await save(page, space, 'knowledge/coffee.md', 'Black.\n');
      assert.equal(await gh.file('ada/notes', 'knowledge/coffee.md'), undefined);

      // She unsuspends it where the page leads her.
      await page.goto(`${space}/github`);
      await press(page, /settings at github/i);
      await there(page, /installations/);
      await page.getByRole('link', { name: 'ada', exact: true }).click();
      await there(page, /settings\/installations/);
      await press(page, 'Unsuspend');
      await page.getByRole('button', { name: 'Suspend', exact: true }).waitFor();
      await page.goto(`${space}/github`);
      await press(page, 'Check now');
      await page.getByRole('heading', { level: 1, name: 'Connected to GitHub' }).waitFor();
      await gh.pushed('ada/notes', 'knowledge/coffee.md', 'Black.');
    });

    test('a removed one is shown, and installed again under another number', async () => {
      const { page } = ada;
      const space = spaceOf('admin');
      const { id } = await gh.installation('ada');
      await page.goto(`${gh.url}/settings/installations/${id}`);
      await press(page, 'Uninstall');
      await page.getByRole('heading', { name: 'Uninstalled' }).waitFor();
      await save(page, space, 'knowledge/milk.md', 'Oat.\n');
      await page.goto(`${space}/github`);
      await press(page, 'Check now');
      await page.getByText(/can no longer reach .+/).first().waitFor();
      await look(page, 'removed');
      assert.equal(await gh.file('ada/notes', 'knowledge/milk.md'), undefined);
      await press(page, /install the app again/i);
      await install(page, 'ada', 'ada/notes');
      await authorize(page);
      await here(page, `${space}/github/pick`);
      await page.getByRole('radio', { name: 'ada/notes' }).check();
      await press(page, /^connect the repository/i);
      await page.getByRole('heading', { level: 1, name: 'Connected to GitHub' }).waitFor();
      assert.notEqual((await gh.installation('ada')).id, id);
      await gh.pushed('ada/notes', 'knowledge/milk.md', 'Oat.');
    });

    test('a person who can no longer push sees why', async () => {
      const { page } = bob;
      const space = spaceOf('bob');
      await gh.order('permission', { Repo: 'acme/handbook', Login: 'bob', Permission: '' });
      await page.goto(`${space}/github`);
      await press(page, 'Check now');
      await page.getByRole('heading', { level: 1, name: /access.*lost/i }).waitFor();
      await look(page, 'lost');
      await save(page, space, 'knowledge/secret.md', 'Mine.\n');

      // The organization has another one, which he may only read.
      await page.goto(`${space}/github`);
      await press(page, /choose another repository/i);
      await authorize(page);
      await here(page, `${space}/github/pick`);
      assert.equal(await page.getByRole('radio', { name: /acme/ }).count(), 0, 'a repository that he may only read');
      await look(page, 'pick-read-only');

      await gh.order('permission', { Repo: 'acme/handbook', Login: 'bob', Permission: 'maintain' });
      await page.goto(`${space}/github`);
      await press(page, 'Check now');
      await page.getByRole('heading', { level: 1, name: 'Connected to GitHub' }).waitFor();
      await gh.pushed('acme/handbook', 'knowledge/secret.md', 'Mine.');
    });

    test('she makes a new repository on the way', async () => {
      const { page } = ada;
      const space = spaceOf('admin');
      await page.goto(`${space}/github`);
      await press(page, /choose another repository/i);
      await authorize(page);
      await here(page, `${space}/github/pick`);
      await page.getByText('Create a new repository').click();
      await page.getByLabel('Owner', { exact: true }).selectOption('ada');
      await page.getByLabel('Name', { exact: true }).fill('satchel');
      await press(page, /^create and connect/i);
      await authorize(page);
      await here(page, `${space}/github`);
      await page.getByRole('heading', { level: 1, name: 'Connected to GitHub' }).waitFor();
      await page.getByRole('link', { name: 'ada/satchel' }).waitFor();
      await gh.pushed('ada/satchel', 'knowledge/tea.md', 'Assam, no milk.');
    });

    test('disconnecting leaves both as they are', async () => {
      const { page } = ada;
      const space = spaceOf('admin');
      await page.goto(`${space}/github`);
      await press(page, 'Disconnect the repository');
      await look(page, 'disconnect');
      await page.getByRole('button', { name: 'Disconnect', exact: true }).click();
      await page.getByRole('heading', { level: 1, name: 'Connect this space to GitHub' }).waitFor();
      await save(page, space, 'knowledge/water.md', 'Still.\n');
      assert.equal(await gh.file('ada/satchel', 'knowledge/water.md'), undefined);
      assert.equal(await gh.file('ada/satchel', 'knowledge/tea.md'), 'Assam, no milk.');
    });

    test('once the App is there, people sign in with it', async () => {
      const { page } = await person('carol');
      await page.goto('/signin');
      await page.getByRole('link', { name: 'Sign in with GitHub' }).click();
      await authorize(page);
      await page.waitForURL((u) => u.origin === s.issuer && !u.pathname.startsWith('/signin/'));
      await page.goto('/account');
      await page.getByText(/carol/).first().waitFor();
      const nobody = await person('mallory');
      await nobody.page.goto('/signin');
      await nobody.page.getByRole('link', { name: 'Sign in with GitHub' }).click();
      await authorize(nobody.page);
      await nobody.page.waitForURL((u) => u.origin === s.issuer);
      assert.notEqual((await nobody.page.goto('/account')).url(), `${s.issuer}/account`, 'who is not on the allow list came in');
      nobody.complaints.length = 0; // the refusal is an error
    });

    test('attack: what comes back from GitHub is not what was asked for', async () => {
      const { page } = bob;
      const { id } = await gh.installation('ada');
      for (const path of [
        `/github/setup?installation_id=${id}&setup_action=install`,
        `/github/setup?installation_id=${id}&setup_action=install&state=forged`,
        `/github/callback?code=stolen&state=forged`,
        `/github/callback?code=stolen&installation_id=${id}&setup_action=install`,
      ]) {
        await page.goto(path);
        assert.match(await page.locator('main').innerText(), /nothing was connected|which repository belongs to which space/i, path);
        await page.goto(`${spaceOf('bob')}/github`);
        await page.getByRole('link', { name: 'acme/handbook' }).waitFor();
      }
      await page.goto('/github/setup?setup_action=install');
      await look(page, 'setup-hint');
      bob.complaints.length = 0; // some of these answers are errors
    });

    test('no token is in the logs, on disk in plain text, or where git keeps addresses', async () => {
      const issued = await gh.order('issued');
      assert.ok(issued.length > 10, 'nothing was issued');
      const places = [['the log', Buffer.from(s.server.output)]];
      for (const e of readdirSync(s.data, { recursive: true, withFileTypes: true })) {
        if (!e.isFile()) continue;
        const file = join(e.parentPath, e.name);
        try {
          places.push([file, readFileSync(file)]);
        } catch (err) { // the server lives, and its locks and packs come and go
          if (err.code !== 'ENOENT') throw err;
        }
      }
      assert.ok(places.some(([name]) => name.endsWith('config')), 'no git configuration was looked at');
      assert.ok(places.some(([, bytes]) => bytes.includes('acme/handbook')), 'no database was looked at');
      const found = [];
      for (const secret of issued) {
        for (const [name, bytes] of places) if (bytes.includes(secret)) found.push(`${secret.slice(0, 8)}… in ${name}`);
      }
      assert.deepEqual(found, []);
    });

    test('GitHub understood everything that it was asked', async () => {
      assert.deepEqual(await gh.violations(), []);
      // Tokens of people are ended as soon as they were used.
      const requests = await gh.order('requests');
      const ended = requests.filter((r) => r.Method === 'DELETE' && r.Path.startsWith('/applications/'));
      assert.equal(ended.length, requests.filter((r) => r.Path === '/login/oauth/access_token').length);
      assert.deepEqual(opened.flatMap((p) => p.complaints), []);
    });
  });
}
