// The tasks of a new owner and admin, in a real Chromium: each task begins at Home, and takes at
// most five clicks.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open } from './lib/browser.mjs';
import { sdkV1 } from './lib/clients.mjs';
import { GitServer } from './lib/git-server.mjs';
import { cleanup, serve } from './lib/oauth.mjs';
import { binary } from './lib/server.mjs';

describe('searching, settings and administration', { skip: missing }, () => {
  const later = cleanup();
  let s;
  let owner;
  let page;
  let clicks;

  const home = async () => { clicks = 0; await page.goto('/'); };
  const click = async (target) => { clicks++; await target.click(); };
  const link = (name) => page.getByRole('link', { name });
  const button = (name) => page.getByRole('button', { name });
  const heading = (name) => page.getByRole('heading', { level: 1, name }).waitFor();
  // place is an entry of the sidebar, and tab one of the tabs of a page.
  const place = (name) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true });
  const tab = (name) => page.locator('nav.tabs').getByRole('link', { name, exact: true });
  const few = (t) => { t.diagnostic(`${clicks} clicks`); assert.ok(clicks <= 5, `${clicks} clicks`); };

  before(async () => {
    s = await serve(later, { env: { SATCHEL_REMOTES_RETRY_MAX: '250ms' } });
    owner = await open(await launch(later), { baseURL: s.issuer });
    later(() => owner.context.close());
    page = owner.page;
    await page.goto(s.link());
    await button(/^sign in/i).first().click();
    await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
    const client = await sdkV1(s.mcp, s.server.firstKey());
    later(() => client.close());
    for (const [path, content] of [['knowledge/boats.md', '# Boats\n\nA boat needs a mast.\n'], ['knowledge/ropes.md', '# Ropes\n\nA rope holds the mast of a boat.\n']]) {
      const r = await client.call('write', { path, content });
      assert.ok(!r.isError, JSON.stringify(r));
    }
  });
  after(async () => {
    await later.run();
    assert.deepEqual(owner.complaints, []);
  });

  test('a search by keyboard alone', async () => {
    await home();
    await place('Search').focus();
    await page.keyboard.press('Enter');
    await heading('Search');
    await page.keyboard.type('mast');
    await page.locator('#results .found li').nth(1).waitFor();
    assert.match(page.url(), /q=mast/);
    assert.ok(await page.locator('#results mark').count() > 0);
    await judge(page, 'search-typed');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const second = page.locator('#results .found h2 a').nth(1);
    const to = await second.getAttribute('href');
    assert.ok(await second.evaluate((a) => a === document.activeElement));
    await page.keyboard.press('Enter');
    await page.waitForURL((u) => to.startsWith(u.pathname));
  });

  test('a filter, and why a result was found', async () => {
    await page.goto('/');
    await place('Search').click();
    await page.getByRole('searchbox').fill('mast');
    await page.getByRole('searchbox').press('Enter');
    await link('Skills').click();
    await page.getByText(/^No results/).waitFor();
    assert.equal(await link('Skills').getAttribute('aria-current'), 'true');
    await link('Skills').click();
    await link('Why these results?').click();
    await page.getByText('Why this result').first().waitFor();
    await judge(page, 'search-why');
  });

  test('invite a colleague to read', async (t) => {
    await home();
    await click(place('Settings'));
    await click(tab('Members'));
    await heading('Members');
    await judge(page, 'space-members');
    await click(page.getByRole('radio', { name: /^Reader/ }));
    await click(button('Create an invite'));
    await page.getByLabel('The link').waitFor();
    few(t);
  });

  test('publish a folder', async (t) => {
    await home();
    await click(place('Settings'));
    await click(tab('Publishing'));
    await page.getByLabel('Directory', { exact: true }).selectOption('knowledge');
    await click(button('Preview'));
    await click(button('Publish'));
    await page.getByText(/for everybody/i).first().waitFor();
    few(t);
  });

  test('find out why a push fails', async (t) => {
    const remote = await new GitServer('a-password').start();
    later(() => remote.stop());
    remote.answer = 503;
    // The command waits for a push, which this process answers, so it may not block.
    await new Promise((done) => {
      const child = execFile(binary, ['space', 'remote', 'set', remote.create('notes'), '--trusted', '--token-file', '-', '--data', s.data], done);
      child.stdin.end('a-password');
    });
    await home();
    await click(place('Settings'));
    await click(tab('Git remote'));
    await heading('Git remote');
    await click(button('Sync now'));
    const problem = page.locator('.problem');
    await problem.waitFor();
    // The first paragraph is the reason, the second what to do.
    for (const text of [problem.locator('strong'), problem.locator('p').nth(1)]) assert.ok((await text.textContent()).trim());
    await judge(page, 'remote-failing');
    few(t);
    await page.goto('/');
    await page.locator('main a[href$="/remote"]').first().waitFor(); // Home links to the same page
  });

  test('the other tabs of the settings', async () => {
    await home();
    await place('Settings').click();
    for (const name of ['General', 'Export', 'Danger zone']) {
      await tab(name).click();
      await heading(name === 'General' ? 'Settings' : name);
      await judge(page, `space-${name.toLowerCase().replace(' ', '-')}`);
    }
  });

  test('filter and export the audit log', async (t) => {
    await home();
    await click(place('Admin'));
    await click(tab('Audit log'));
    await heading('Audit log');
    await judge(page, 'admin-audit');
    await page.getByLabel('About', { exact: true }).selectOption('Keys');
    await click(button('Filter'));
    await page.waitForURL(/act=key/);
    const saved = page.waitForEvent('download');
    await click(page.getByLabel('More ways to export'));
    await click(link('Export as JSON lines'));
    const lines = readFileSync(await (await saved).path(), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
    assert.ok(lines.length > 0 && lines.every((l) => l.action.startsWith('key')));
    few(t);
  });

  test('the menu of a person, and what the audit log says of it', async (t) => {
    s.run('user', 'add', 'bob');
    await home();
    await click(place('Admin'));
    await heading('People');
    await click(page.getByLabel('More for bob'));
    await judge(page, 'admin-people-menu');
    await click(button(/^Make an admin/));
    const bob = page.getByRole('listitem').filter({ has: page.getByText('bob', { exact: true }) });
    await bob.getByText('admin', { exact: true }).waitFor();
    await click(tab('Audit log'));
    await page.getByRole('listitem').filter({ hasText: 'made bob an admin' }).first().waitFor();
    few(t);
    await page.goto('/admin');
    await page.getByLabel('More for bob').click();
    await button(/^Remove…/).click();
    await judge(page, 'admin-people-remove');
    await button('Cancel').click();
    await page.getByLabel('More for bob').click();
    await button(/^Remove…/).click();
    await button('Remove bob').click();
    await page.getByRole('status').waitFor();
    assert.equal(await bob.count(), 0);
  });

  test('change an access setting', async (t) => {
    await home();
    await click(place('Admin'));
    await click(tab('Access'));
    await heading('Access');
    await judge(page, 'admin-access');
    await click(page.getByRole('radio', { name: /^Only admins/ }));
    await click(button('Save'));
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor();
    assert.ok(await page.getByRole('radio', { name: /^Only admins/ }).isChecked());
    few(t);
  });

  test('see what clients did', async (t) => {
    await home();
    await click(place('Admin'));
    await click(tab('Usage'));
    await heading('Usage');
    await page.getByText('e2e-sdk-v1').first().waitFor();
    await click(page.getByText(/^Show the figures/).first());
    await page.getByRole('cell', { name: '2', exact: true }).first().waitFor();
    await judge(page, 'admin-usage');
    few(t);
    for (const name of ['People', 'Health']) {
      await tab(name).click();
      await heading(name);
      await judge(page, `admin-${name.toLowerCase()}`);
    }
  });
});
