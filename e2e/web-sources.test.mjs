// An admin adds a web site by its address in a browser, watches its sync, and sees
// what each sync changed, why one failed and what to do. A reader only sees the state
// and requests a sync. Every page on the way is judged by axe, works without a mouse,
// and without scripts.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open } from './lib/browser.mjs';
import { cleanup, serve } from './lib/oauth.mjs';
import { freePorts, remove, tempDir } from './lib/server.mjs';
import { until } from './lib/until.mjs';

describe('sources that follow an upstream', { skip: missing }, () => {
  const later = cleanup();
  const people = [];
  const held = new Set(); // answers of upstream that wait
  const site = new Map(); // the pages of upstream: the title, and then paragraphs
  let hold = false;
  let gone = false;
  let s;
  let browser;
  let address;
  let admin; // a page

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
  const fromMenu = async (name) => {
    await admin.getByLabel('More for this source').click();
    await button(admin, name).click();
  };
  const state = (page) => page.locator('.state strong').first();
  const expectError = (status) => {
    for (const p of people) p.complaints = p.complaints.filter((c) => !c.includes(`status of ${status}`));
  };
  const push = (pages) => {
    for (const [name, text] of Object.entries(pages)) {
      if (text === null) site.delete(name);
      else site.set(name, text);
    }
  };
  const release = () => {
    hold = false;
    for (const go of held) go();
    held.clear();
  };

  before(async () => {
    // A public web site: https, with a certificate that the server trusts.
    const dir = tempDir('satchel-upstream-');
    later(() => remove(dir));
    const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'], { stdio: 'ignore' });
    const front = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, async (req, res) => {
      if (hold) await new Promise((go) => { held.add(go); });
      const path = new URL(req.url, address).pathname;
      const text = site.get(path.replace('/guide/', ''));
      if (path === '/sitemap.xml' && !gone) {
        res.writeHead(200, { 'Content-Type': 'application/xml' }).end(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${[...site.keys()].map((n) => `<url><loc>${address}${n}</loc></url>`).join('')}</urlset>`);
      } else if (gone || !path.startsWith('/guide/') || text === undefined) res.writeHead(404).end();
      else {
        const [title, ...lines] = text.split('\n');
        res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' })
          .end(`<!doctype html><html lang="en"><title>${title}</title><body><main><h1>${title}</h1>${lines.map((l) => `<p>${l}</p>`).join('')}</main></body></html>`);
      }
    });
    const [port] = await freePorts(1);
    address = `https://localhost:${port}/guide/`;
    front.listen(port, 'localhost');
    await once(front, 'listening');
    later(() => { release(); front.closeAllConnections(); front.close(); });
    push({ '': 'Handbook\nHow we work in this team, from the first day.', deploy: 'How we deploy\nWe deploy on Fridays, after lunch.', plan: 'The plan\nThe plan of the year has four parts.', hire: 'How we hire\nTwo of us talk with each person.' });
    s = await serve(later, { env: { SSL_CERT_FILE: cert, SATCHEL_REMOTES_ALLOW_NETWORKS: '127.0.0.0/8,::1/128', SATCHEL_REMOTES_ALLOW_PORTS: `443,${port}` } });
    s.run('user', 'add', 'bob');
    browser = await launch(later);
  });

  after(async () => {
    await later.run();
    assert.deepEqual(people.flatMap((p) => p.complaints), []);
  });

  test('an empty library says what a source is, and how to add one', async () => {
    admin = await person('admin');
    await admin.goto('/library');
    assert.equal(await admin.getByRole('main').getByRole('link', { name: 'Add a source' }).count(), 1);
    await judge(admin, 'sources-empty');
    await admin.getByRole('link', { name: 'Add a source' }).click();
    await heading(admin, 'Add a source');
    assert.equal(await admin.getByRole('main').getByRole('textbox', { name: 'Address' }).count(), 1);
    await judge(admin, 'sources-add');
  });

  test('a wrong address is marked where it was entered', async () => {
    await admin.getByLabel('Address').fill('https://localhost:1/none/');
    await button(admin, 'Show what is there').click();
    await admin.getByRole('alert').waitFor();
    assert.equal(await admin.getByLabel('Address').getAttribute('aria-invalid'), 'true');
    await judge(admin, 'sources-add-problem');
  });

  test('a preview that takes a while can be canceled', async () => {
    hold = true;
    await admin.getByLabel('Address').fill(address);
    await button(admin, 'Show what is there').click();
    await admin.getByRole('progressbar').waitFor();
    await judge(admin, 'sources-add-working');
    await until('upstream is asked', () => held.size > 0);
    await button(admin, 'Cancel').click();
    await admin.getByRole('progressbar').waitFor({ state: 'hidden' });
    assert.equal(await admin.getByLabel('Address').inputValue(), address);
    release();
  });

  test('the preview shows what is there, and asks before anything is added', async () => {
    // With the keyboard alone.
    await admin.getByLabel('Address').focus();
    await admin.keyboard.press('Enter');
    await admin.getByRole('heading', { name: 'Preview' }).waitFor();
    for (const text of ['Web site', '4 files', 'How we deploy']) await admin.getByText(text, { exact: true }).waitFor();
    assert.equal(await admin.getByLabel('Title').inputValue(), 'Localhost');
    await admin.getByLabel('Title').fill('Handbook');
    await judge(admin, 'sources-preview');
    await admin.getByText('More settings').click();
    assert.equal(await admin.getByLabel('ID', { exact: true }).inputValue(), '');
    await judge(admin, 'sources-preview-settings');
    assert.deepEqual(s.run('source', 'list'), []);
    await admin.getByLabel('ID', { exact: true }).fill('Not an ID');
    await button(admin, 'Add this source').click();
    await admin.getByRole('alert').waitFor();
    assert.equal(await admin.getByLabel('ID', { exact: true }).getAttribute('aria-invalid'), 'true');
    await judge(admin, 'sources-preview-problem');
    expectError(400);
    await admin.getByLabel('ID', { exact: true }).fill('handbook');
  });

  test('the page of a source follows its first sync', async () => {
    hold = true;
    await button(admin, 'Add this source').click();
    await heading(admin, 'Handbook');
    await admin.getByRole('progressbar', { name: 'Progress of the update' }).waitFor();
    await judge(admin, 'source-running');
    release();
    await until('the page is up to date by itself', async () => await state(admin).textContent() === 'Up to date');
    await admin.getByText('4 files added').waitFor();
    await judge(admin, 'source');
    const html = await admin.content();
    const files = await admin.evaluate(() => performance.getEntriesByType('resource').map((r) => r.name).filter((n) => n.includes('/static/')));
    let bytes = gzipSync(html).length;
    for (const f of files) bytes += gzipSync(Buffer.from(await (await fetch(f)).arrayBuffer())).length;
    assert.ok(bytes <= 50_000, `${bytes} bytes`);
  });

  test('a dry run shows the files, and the history what a sync changed', async () => {
    push({ deploy: 'How we deploy\nWe deploy on Mondays, after lunch.', new: 'New\nThis page is new here.' });
    await fromMenu('Preview the update');
    await heading(admin, /would change/);
    await admin.getByText('This update would add 1 file and change 1.').waitFor();
    await judge(admin, 'source-dry-run');
    await button(admin, 'Update now').click();
    await admin.getByText('1 file added, 1 changed').waitFor();
    await judge(admin, 'source-history');
    await admin.getByRole('link', { name: /^Show the changes/ }).first().click();
    await admin.getByRole('cell', { name: /on Mondays/ }).waitFor();
    await judge(admin, 'source-changes');
    await admin.goBack();
  });

  test('a sync that would remove most files waits for a person', async () => {
    push({ deploy: null, new: null, plan: null });
    await button(admin, 'Update now').click();
    await button(admin, 'Confirm the removal').waitFor();
    await judge(admin, 'source-shrunk');
    await button(admin, 'Confirm the removal').click();
    await admin.getByText('3 files deleted').waitFor();
  });

  test('a vanished upstream is said where it counts, with what to do', async () => {
    gone = true;
    await button(admin, 'Update now').click();
    await until('the page knows', async () => await state(admin).textContent() === 'Not found at its address');
    await judge(admin, 'source-gone');
    await admin.goto('/library');
    await admin.getByRole('link', { name: /Sources 1 needs attention/ }).waitFor();
    await judge(admin, 'sources-trouble');
    gone = false;
  });

  test('a reader sees the state and requests a sync, without scripts too', async () => {
    const bob = await person('bob', { javaScriptEnabled: false });
    await bob.goto('/library');
    await bob.getByRole('link', { name: 'Details of Handbook' }).click();
    await heading(bob, 'Handbook');
    assert.deepEqual(await bob.getByRole('main').getByRole('button').allTextContents(), ['Update now']);
    await button(bob, 'Update now').click();
    await until('it is up to date', async () => {
      await bob.goto('/library/sources/handbook');
      return await state(bob).textContent() === 'Up to date';
    });
    assert.equal((await bob.goto('/library/sources/handbook/change')).status(), 403);
    expectError(403);
  });

  test('a source is changed, paused and removed', async () => {
    await admin.goto('/library/sources/handbook/change');
    await judge(admin, 'source-change');
    await admin.getByLabel('Title').fill('How we work');
    await admin.getByLabel('Updates', { exact: true }).selectOption('3600');
    await button(admin, 'Save').click();
    await heading(admin, 'How we work');
    await fromMenu('Pause the updates');
    await button(admin, 'Resume the updates').waitFor();
    assert.equal(await state(admin).textContent(), 'Paused');
    await judge(admin, 'source-paused');
    await admin.getByLabel('More for this source').click();
    await judge(admin, 'source-menu');
    await admin.getByRole('link', { name: 'Remove the source' }).click();
    await heading(admin, /^Remove/);
    await judge(admin, 'source-remove');
    await button(admin, 'Yes, remove “How we work”').click();
    await heading(admin, 'Sources');
    assert.deepEqual(s.run('source', 'list'), []);
  });

  test('adding works without scripts', async () => {
    const plainly = await person('admin', { javaScriptEnabled: false });
    await plainly.goto('/library/add');
    await plainly.getByLabel('Address').fill(address);
    await button(plainly, 'Show what is there').click();
    await plainly.getByRole('heading', { name: 'Preview' }).waitFor();
    await plainly.getByText('More settings').click();
    await plainly.getByLabel('Depth of links').fill('999');
    await button(plainly, 'Preview again').click();
    await plainly.getByRole('alert').waitFor();
    assert.equal(await plainly.getByLabel('Depth of links').getAttribute('aria-invalid'), 'true');
    expectError(400);
    await plainly.getByLabel('Depth of links').fill('');
    await plainly.getByLabel('Title').fill('Handbook');
    await plainly.getByLabel('ID', { exact: true }).fill('handbook');
    await button(plainly, 'Add this source').click();
    await heading(plainly, 'Handbook');
    assert.deepEqual(s.run('source', 'list').map((x) => x.id), ['handbook']);
  });
});
