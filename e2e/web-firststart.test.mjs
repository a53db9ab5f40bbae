// From the block that `serve` prints to a connected client, as somebody new walks it: the link, the
// page of a client, what the server refused, the tick. And what a phone does with the pages: it
// installs them, shares to them, and opens their menu by keyboard.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open } from './lib/browser.mjs';
import { Provider, connect, sdks } from './lib/oauth-sdk.mjs';
import { allow, awaitRedirect, cleanup, serve } from './lib/oauth.mjs';
import { until } from './lib/until.mjs';

const sdk = sdks['@modelcontextprotocol/sdk'];
const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

class ClaudeCode extends Provider {
  get clientMetadata() { return { ...super.clientMetadata, client_name: 'Claude Code (satchel)' }; }
}

describe('the first start', { skip: missing }, () => {
  const later = cleanup();
  const printed = {};
  let s, browser, link;

  before(async () => {
    s = await serve(later);
    browser = await launch(later);
    await until(() => `the block is printed:\n${s.server.output}`, async () => /^ {2}Stop /m.test(s.server.output));
    for (const [, name, value] of s.server.output.matchAll(/^ {2}(\S[^\n]*?) {2,}(\S[^\n]*)$/gm)) printed[name] ??= value;
    link = () => execFileSync('sh', ['-c', /^ +(\S.* login-link --data .*)$/m.exec(s.server.output)[1]], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).match(/http\S+/)[0];
  });
  after(() => later.run());

  async function signedIn(options = {}) {
    const p = await open(browser, { baseURL: s.issuer, ...options });
    await p.page.goto(link());
    await p.page.getByRole('button', { name: /^sign in/i }).click();
    await p.page.waitForURL((u) => !u.pathname.startsWith('/signin'));
    return p;
  }

  test('the block has all that one needs', () => {
    assert.equal(printed['MCP address'], `${s.issuer}/mcp`);
    assert.equal(printed.Data, s.server.data);
    assert.ok(printed.Stop);
  });

  test('from the printed link to a connected client', async () => {
    const { page, context, complaints } = await signedIn();
    await page.goto('/connect');
    await judge(page, 'firststart-connect');
    await page.locator('.cards').getByRole('link', { name: /^Claude Code / }).click();
    await page.getByRole('heading', { level: 2, name: 'The first call' }).waitFor();
    await judge(page, 'firststart-claude-code');
    // The plugin is the first command, and each address on the page has the host of the browser.
    const commands = page.locator('.steps code.command');
    assert.equal(await commands.first().getAttribute('id'), 'install');
    const hosts = new Set((await page.content()).match(/https?:\/\/(localhost|127\.0\.0\.1):\d+/g));
    assert.deepEqual([...hosts], [s.issuer]);

    // A client that fails: the page says what the client asked, and what was wrong.
    const refusals = page.locator('[data-refused]');
    assert.equal(await refusals.isVisible(), false);
    await fetch(printed['MCP address'], { method: 'POST', headers: { 'User-Agent': 'claude-code/9.9', Authorization: 'Bearer wrong', 'Content-Type': 'application/json' }, body: '{}' });
    await refusals.getByText('claude-code 9.9').waitFor();
    assert.match(await refusals.getByRole('listitem').innerText(), /claude-code 9\.9 \S/);
    assert.match(await refusals.locator('details').textContent(), /POST \/mcp.*401/);
    assert.doesNotMatch(await refusals.innerText(), /wrong/);
    await judge(page, 'firststart-refused');

    const redirect = await awaitRedirect(later);
    const client = await connect(sdk, printed['MCP address'], new ClaudeCode({ redirectUrl: redirect.uri }), async (url) => {
      const tab = await context.newPage();
      await tab.goto(String(url));
      await tab.getByRole('button', { name: allow }).click();
      const back = await redirect.next();
      await tab.getByRole('heading', { name: 'You may close this page.' }).waitFor();
      await tab.close();
      return back;
    });
    try {
      await client.callTool({ name: 'instructions', arguments: {} });
    } finally {
      await client.close();
    }
    await page.locator('[data-arrivals] li.done').waitFor();
    assert.equal(await refusals.isVisible(), false);
    // The client's own page has no icon.
    assert.deepEqual(complaints.filter((c) => c.startsWith(s.issuer)), []);
  });

  test('the key that a client needs may change files, and one program is shown at a time', async () => {
    const { page, complaints } = await signedIn();
    await page.goto('/connect/code');
    await judge(page, 'firststart-code');
    const programs = page.locator('.samples details');
    const opened = () => programs.evaluateAll((all) => all.filter((d) => d.open).length);
    assert.equal(await opened(), 1);
    await programs.last().locator('summary').focus();
    await page.keyboard.press('Enter');
    await until('another program is shown', async () => await programs.last().evaluate((d) => d.open));
    assert.equal(await opened(), 1);
    for (const code of await programs.locator('pre').all()) assert.match(await code.textContent(), /remember|\/memory/);
    await page.getByRole('link', { name: /^create a key/i }).click();
    assert.ok(await page.getByRole('checkbox', { name: /may change files/i }).isChecked());
    assert.deepEqual(complaints, []);
  });

  test('a browser can install the pages', async () => {
    const { page, context } = await signedIn();
    await page.goto('/connect');
    const cdp = await context.newCDPSession(page);
    const { url, errors, data } = await cdp.send('Page.getAppManifest');
    assert.deepEqual(errors, []);
    assert.equal(url, `${s.issuer}/manifest.webmanifest`);
    const m = JSON.parse(data);
    assert.deepEqual(m.icons.map((i) => i.purpose), ['any', 'maskable']);
    for (const { src } of m.icons) {
      const size = await page.evaluate((at) => new Promise((tell, fail) => {
        const i = new Image();
        i.onload = () => tell(i.naturalWidth);
        i.onerror = () => fail(new Error(at));
        i.src = at;
      }), src);
      assert.ok(size > 0, src);
    }
    const { installabilityErrors } = await cdp.send('Page.getInstallabilityErrors');
    // Each test has a private window, in which nothing is installed.
    assert.deepEqual(installabilityErrors.map((e) => e.errorId).filter((id) => id !== 'in-incognito'), []);
  });

  for (const javaScriptEnabled of [true, false]) {
    test(`a share button puts a link into the inbox, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const { page, complaints } = await signedIn({ ...phone, javaScriptEnabled });
      const title = `Tea ceremony ${javaScriptEnabled}`;
      await page.goto(`/share?${new URLSearchParams({ title, text: 'https://example.com/tea?a=1&b=2' })}`);
      assert.equal(await page.getByLabel('Link').inputValue(), 'https://example.com/tea?a=1&b=2');
      if (javaScriptEnabled) await judge(page, 'firststart-share');
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.getByRole('heading', { level: 1, name: 'Saved' }).waitFor();
      if (javaScriptEnabled) await judge(page, 'firststart-shared');
      await page.getByRole('link', { name: 'Open the note' }).click();
      await page.waitForURL((u) => /\/files\/inbox\/.*-tea-ceremony-/.test(u.pathname));
      await page.getByRole('main').getByRole('link', { name: 'https://example.com/tea?a=1&b=2' }).first().waitFor();
      assert.deepEqual(complaints, []);
    });
  }

  test('the menu of a phone opens by keyboard, and the palette names spaces without their marks', async () => {
    const { page } = await signedIn(phone);
    await page.goto('/connect');
    const nav = page.getByRole('navigation', { name: 'Pages' });
    await nav.getByRole('button', { name: 'More' }).focus();
    await page.keyboard.press('Enter');
    await nav.getByRole('link', { name: 'Activity' }).waitFor();
    await judge(page, 'firststart-menu');
    // The pictures were also taken of a wide page, which closes the menu.
    await nav.getByRole('button', { name: 'More' }).focus();
    await page.keyboard.press('Enter');
    await nav.getByRole('link', { name: 'Activity' }).waitFor();
    await page.keyboard.press('Tab');
    assert.ok(await page.locator('#nav-places a').first().evaluate((a) => a === document.activeElement));
    await page.keyboard.press('Escape');
    await nav.getByRole('link', { name: 'Activity' }).waitFor({ state: 'hidden' });

    const space = (await page.locator('.switch .name bdi').first().innerText()).trim();
    await page.keyboard.press('Control+k');
    await page.getByRole('option', { name: `${space} Space`, exact: true }).waitFor();
  });
});
