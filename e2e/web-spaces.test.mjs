// An owner deletes one of two spaces, after reading what goes, and gives another to a
// member. Every page on the way is judged by axe.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open } from './lib/browser.mjs';
import { cleanup, serve } from './lib/oauth.mjs';

describe('the end of a space', { skip: missing }, () => {
  const later = cleanup();
  let s;
  let page;
  let owner;
  const heading = (name) => page.getByRole('heading', { level: 1, name }).waitFor();
  const settings = async (name) => {
    await page.goto('/spaces');
    await page.getByLabel(`More for ${name}`).click();
    await page.locator('main').getByRole('link', { name: 'Settings' }).filter({ visible: true }).click();
    await heading('Settings');
    await page.getByRole('link', { name: 'Danger zone' }).click();
    await heading('Danger zone');
  };

  before(async () => {
    s = await serve(later, { env: { SATCHEL_SANDBOX_RUNTIME: 'none' } });
    s.run('user', 'add', 'bob');
    for (const name of ['garden', 'plans']) {
      s.run('space', 'create', name);
      s.run('space', 'share', 'bob', '--space', name);
    }
    const browser = await launch(later);
    owner = await open(browser, { baseURL: s.issuer });
    later(() => owner.context.close());
    page = owner.page;
    await page.goto(s.link());
    await page.getByRole('button', { name: /^sign in/i }).first().click();
    await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
  });

  after(later.run);

  test('is deleted by whoever types its name', async () => {
    await settings('garden');
    await page.getByRole('link', { name: 'Delete this space' }).click();
    await heading('Delete the space garden');
    await judge(page, 'space-delete');
    const name = page.getByLabel(/^Type the name .* to confirm/);
    await name.fill('gardens');
    await page.getByRole('button', { name: 'Delete this space for good' }).click();
    await page.getByText('the name does not match').waitFor();
    owner.complaints = owner.complaints.filter((c) => !c.includes('status of 400'));
    await judge(page, 'space-delete-wrong');
    await name.fill('garden');
    await page.getByRole('button', { name: 'Delete this space for good' }).click();
    await page.getByText('The space was deleted.').waitFor();
    assert.equal(await page.getByLabel('More for garden').count(), 0);
    assert.ok(!JSON.stringify(s.run('space', 'list')).includes('garden'));
  });

  test('is given to a member', async () => {
    await settings('plans');
    await page.getByRole('link', { name: 'Transfer this space' }).click();
    await heading('Transfer the space plans');
    await judge(page, 'space-give');
    await page.getByRole('radio', { name: /bob/ }).check();
    await page.getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Transfer this space' }).click();
    await page.getByText('The space was transferred.').waitFor();
    assert.ok(s.run('space', 'list').some((x) => x.name === 'plans' && x.owner === 'bob'));
  });
});
