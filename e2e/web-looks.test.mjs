// How the main pages look, on a desk and on a phone: each is compared with its picture in
// e2e/pictures. Times differ from run to run, so they are covered.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { launch, missing, open } from './lib/browser.mjs';
import { aWeek } from './lib/notes.mjs';
import { cleanup, serve } from './lib/oauth.mjs';
import { looksLike } from './lib/pictures.mjs';

const views = {
  desk: { viewport: { width: 1280, height: 800 }, colorScheme: 'light', deviceScaleFactor: 0.5 },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'dark', deviceScaleFactor: 0.5 },
};

describe('the main pages look as they should', { skip: missing }, () => {
  const later = cleanup();
  let s;
  let browser;
  let pages;

  before(async () => {
    s = await serve(later, { env: { SATCHEL_SANDBOX_RUNTIME: 'gvisor' } });
    browser = await launch(later);
    const space = `/spaces/${await aWeek(s)}`;
    pages = {
      home: '/', files: `${space}/files`, file: `${space}/files/knowledge/garden/watering.md`, edit: `${space}/edit/knowledge/garden/watering.md`,
      search: `${space}/search?q=when+is+the+boiler+serviced`, memory: `${space}/memory`, activity: `${space}/activity`, sources: '/library',
      client: '/connect/claude-code', settings: space,
    };
  });
  after(() => later.run());

  for (const [view, options] of Object.entries(views)) {
    test(`on a ${view}`, async () => {
      const { page, complaints } = await open(browser, { baseURL: s.issuer, locale: 'en-GB', ...options });
      await page.goto(s.link());
      await page.getByRole('button', { name: /^sign in/i }).click();
      await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(path, { waitUntil: 'load' });
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} scrolls sideways`);
        await looksLike(browser, page, `${name}-${view}`, [page.locator('time, code')]);
      }
      assert.deepEqual(complaints, []);
    });
  }
});
