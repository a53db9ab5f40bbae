// The frame of the pages and their parts, in a real Chromium: the navigation on a desk and on a
// phone, the theme, the palette, and the pictures of the style guide.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open } from './lib/browser.mjs';
import { cleanup, serve } from './lib/oauth.mjs';
import { looksLike } from './lib/pictures.mjs';

const development = resolve(process.env.E2E_BINARY ?? join(import.meta.dirname, '../bin/satchel-conformance'));
const phone = { width: 390, height: 844 };

describe('the frame of the pages', { skip: missing }, () => {
  const later = cleanup();
  let s;
  let browser;

  before(async () => {
    s = await serve(later, { program: development });
    browser = await launch(later);
  });
  after(() => later.run());

  // signedIn opens a page as the first admin.
  async function signedIn(options = {}) {
    const p = await open(browser, { baseURL: s.issuer, ...options });
    await p.page.goto(s.link());
    await p.page.getByRole('button', { name: /^sign in/i }).click();
    await p.page.waitForURL((u) => !u.pathname.startsWith('/signin'));
    return p;
  }

  test('the parts look as they should, in both themes', async (t) => {
    const { page } = await signedIn({ viewport: { width: 960, height: 800 }, deviceScaleFactor: 0.5 });
    const answer = await page.goto('/styleguide');
    if (answer.status() === 404 && !process.env.CI) return t.skip(`${development} is no development build`);
    await judge(page, 'styleguide');
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await looksLike(browser, page.locator('body'), `styleguide-${colorScheme}`);
    }
  });

  test('no page moves while it loads, and each is small', async () => {
    const { page } = await signedIn();
    await page.addInitScript(() => {
      window.moved = 0;
      new PerformanceObserver((l) => { for (const e of l.getEntries()) window.moved += e.value; }).observe({ type: 'layout-shift', buffered: true });
    });
    const places = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').evaluateAll((l) => l.map((a) => a.href));
    assert.ok(places.length >= 9, `the navigation has ${places.length} places`);
    for (const url of places) {
      await page.goto(url, { waitUntil: 'load' });
      const { moved, bytes } = await page.evaluate(() => ({
        moved: window.moved,
        bytes: [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].reduce((n, e) => n + e.decodedBodySize, 0),
      }));
      assert.equal(moved, 0, `${url} moves by ${moved}`);
      assert.ok(bytes < 100_000, `${url} is ${bytes} bytes before it is compressed`);
    }
  });

  for (const javaScriptEnabled of [true, false]) {
    test(`the theme is chosen in the menu of the person and kept, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const { page, complaints } = await signedIn({ javaScriptEnabled, colorScheme: 'light' });
      const choose = async (theme) => {
        await page.getByRole('button', { name: /^account of/i }).click();
        await page.getByRole('button', { name: theme, exact: true }).click();
        await page.waitForLoadState();
      };
      await page.goto('/connect');
      const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await colour();
      await choose('Dark');
      assert.equal(new URL(page.url()).pathname, '/connect');
      assert.notEqual(await colour(), light);
      await page.goto('/account');
      await page.getByRole('button', { name: /^account of/i }).click();
      await page.getByRole('button', { name: 'Dark', exact: true, pressed: true }).waitFor();
      await page.goto('/connect');
      await choose('System');
      assert.equal(await colour(), light);
      assert.deepEqual(complaints, []);
    });
  }

  test('a phone has four places in a bar, and the others in a menu', async () => {
    const { page, complaints } = await signedIn({ viewport: phone, hasTouch: true, isMobile: true, javaScriptEnabled: false });
    const nav = page.getByRole('navigation', { name: 'Pages' });
    assert.deepEqual(await nav.getByRole('link').allTextContents(), ['Home', 'Files', 'Search', 'Memory']);
    await nav.getByRole('button', { name: 'More' }).click();
    await nav.getByRole('link', { name: 'Activity' }).click();
    await page.getByRole('heading', { level: 1, name: 'Activity' }).waitFor();
    await nav.getByRole('button', { name: 'More' }).click();
    await nav.getByRole('link', { name: 'Sources' }).waitFor();
    await page.getByRole('button', { name: /^account of/i }).click();
    await page.getByRole('button', { name: /^sign out/i }).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('the palette goes to a page or a file, and searches', async () => {
    const { page, complaints } = await signedIn();
    await page.getByRole('link', { name: 'Files', exact: true }).click();
    await page.locator('table.tree').waitFor();
    const box = page.getByRole('combobox', { name: 'Search or jump to' });
    const options = page.getByRole('option');

    await page.keyboard.press('Control+k');
    assert.ok(await box.evaluate((e) => e === document.activeElement));
    await judge(page, 'palette');
    await box.fill('connect');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/connect');

    await page.keyboard.press('/');
    await box.fill('instruct');
    await options.filter({ hasText: 'instructions.md' }).waitFor();
    assert.equal(await box.getAttribute('aria-activedescendant'), await page.locator('[role="option"][aria-selected="true"]').getAttribute('id'));
    await judge(page, 'palette-files');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/files/resources/instructions.md');

    // A page with somebody's text allows the palette too, and a key that is typed into a field opens nothing.
    await page.keyboard.press('Control+k');
    await box.fill('a / b');
    await options.filter({ hasText: 'Search for' }).waitFor();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForURL((u) => u.pathname.endsWith('/search') && u.searchParams.get('q') === 'a / b');

    await page.keyboard.press('Control+k');
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('dialog.palette[open]').count(), 0);
    assert.deepEqual(complaints, []);
  });
});
