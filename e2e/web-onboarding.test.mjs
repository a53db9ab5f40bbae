// From an empty server to a client's first call, as somebody new walks it in a
// browser: the one-time link, a repository at GitHub or none, what they bring, and
// a client that is ticked when it calls; with scripts and without. Every page on
// the way is judged by axe, light and dark, on a phone and on a desk.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open, screenshots } from './lib/browser.mjs';
import { GitHub } from './lib/github.mjs';
import { Provider, connect, sdks } from './lib/oauth-sdk.mjs';
import { allow, awaitRedirect, cleanup, serve } from './lib/oauth.mjs';
import { until } from './lib/until.mjs';

const sdk = sdks['@modelcontextprotocol/sdk'];
const text = (r) => r.content.map((c) => c.text ?? '').join('\n');

// Named registers by a name of its own.
class Named extends Provider {
  constructor(name, options) {
    super(options);
    this.named = name;
  }

  get clientMetadata() { return { ...super.clientMetadata, client_name: this.named ?? super.clientMetadata.client_name }; }
}

// call connects a client in a tab of the person's browser and has it call once.
async function call(later, s, context, name) {
  const redirect = await awaitRedirect(later);
  const client = await connect(sdk, s.mcp, new Named(name, { redirectUrl: redirect.uri }), async (url) => {
    const tab = await context.newPage();
    await tab.goto(String(url));
    await tab.getByRole('button', { name: allow }).click();
    const back = await redirect.next();
    // A tab that is closed while it still navigates may hang Chromium.
    await tab.getByRole('heading', { name: 'You may close this page.' }).waitFor();
    await tab.close();
    return back;
  });
  try {
    return text(await client.callTool({ name: 'instructions', arguments: {} }));
  } finally {
    await client.close();
  }
}

for (const javaScriptEnabled of [true, false]) {
  describe(`the first minutes, ${javaScriptEnabled ? 'with' : 'without'} scripts`, { skip: missing }, () => {
    const later = cleanup();
    const opened = [];
    let s, gh, browser;

    // axe is a script.
    const look = (page, name) => javaScriptEnabled && judge(page, `onboarding-${name}`);
    const press = (page, name) => page.getByRole('button', { name }).click();
    const at = (page, path) => page.waitForURL((u) => u.origin === s.issuer && u.pathname === path);
    const there = (page, path) => page.waitForURL((u) => u.origin === gh.url && path.test(u.pathname));
    // pushed waits until a file at GitHub matches.
    const pushed = async (repo, path, like) => {
      let now;
      await until(() => `${repo}: ${path} is ${JSON.stringify(now)}`, async () => like.test(now = await gh.file(repo, path) ?? ''));
    };
    const link = (page, name) => page.locator('.checklist').getByRole('link', { name, exact: true });
    const next = (page) => page.locator('[aria-current="step"]');

    const person = async (link) => {
      const p = await open(browser, { baseURL: s.issuer, javaScriptEnabled });
      opened.push(p);
      await p.page.goto(link);
      await p.page.getByRole('button', { name: /^sign in/i }).click();
      await at(p.page, '/');
      return p;
    };

    before(async () => {
      gh = await GitHub.start(later);
      await gh.order('person', { Login: 'ada' });
      await gh.order('repository', { Owner: 'ada', Name: 'brain', Private: true });
      s = await serve(later, { env: { SATCHEL_AUTH_GITHUB_URL: gh.url } });
      browser = await launch(later);
    });

    after(later.run);

    test('the admin: a repository at GitHub, three questions, a client', async (t) => {
      t.diagnostic(`screenshots are in ${screenshots()}`);
      const { page, context } = await person(s.link());
      await page.getByRole('heading', { level: 1, name: /^welcome/i }).waitFor();
      await look(page, 'first');

      // Where it is kept.
      await link(page, 'Set up GitHub').click();
      await page.getByRole('heading', { level: 1, name: 'Connect this space to GitHub' }).waitFor();
      await look(page, 'github-none');
      const space = new URL(page.url()).pathname;
      await page.getByRole('link', { name: 'Create the GitHub App' }).click();
      await look(page, 'github-app');
      const signedIn = await context.newPage();
      await gh.signIn(signedIn, 'ada');
      await signedIn.close();
      await press(page, 'Create the App at GitHub');
      if (!javaScriptEnabled) await press(page, /^continue to/i);
      await there(page, /settings\/apps\/new/);
      await press(page, 'Create GitHub App');
      await at(page, '/admin/github');
      await look(page, 'github-made');
      await page.getByRole('link', { name: /^connect a repository/i }).click();
      await at(page, space);
      await press(page, 'Install the App at GitHub');
      await there(page, /installations\/new/);
      await page.getByRole('link', { name: 'ada', exact: true }).click();
      await page.getByRole('radio', { name: /only select/i }).check();
      await page.getByRole('checkbox', { name: 'ada/brain' }).check();
      await page.getByRole('button', { name: 'Install', exact: true }).click();
      await there(page, /authorize/);
      await page.getByRole('button', { name: /^(authorize|continue)/i }).click();
      await at(page, `${space}/pick`);
      await look(page, 'github-pick');
      await page.getByRole('radio', { name: 'ada/brain' }).check();
      await press(page, /^connect the repository/i);
      await page.getByRole('heading', { level: 1, name: 'Connected to GitHub' }).waitFor();

      // What they bring.
      await page.goto('/');
      await look(page, 'kept');
      await link(page, 'Import').click();
      await page.getByRole('heading', { name: /three questions/ }).click();
      await look(page, 'bring');
      await press(page, 'Remember this');
      await page.getByRole('alert').waitFor();
      await look(page, 'bring-wrong');
      await page.getByLabel('What should your AIs call you?').fill('Ada, not Miss Lovelace');
      await page.getByLabel('How should answers be written?').fill('Short: in British English, with "sources".');
      await press(page, 'Remember this');
      await at(page, '/');
      await page.getByText('Saved.', { exact: true }).waitFor();
      await look(page, 'brought');
      await pushed('ada/brain', 'memory/person/name.md', /Ada, not Miss Lovelace/);

      // A client.
      await next(page).getByRole('link', { name: 'Connect a client' }).click();
      await at(page, '/connect');
      await look(page, 'connect');
      for (const name of ['Claude on the web', 'Claude Desktop', 'ChatGPT', 'Codex', 'Cursor', 'VS Code', 'Gemini CLI', 'Any other client', 'Any other, with a key', 'Claude Code']) {
        await page.goto('/connect');
        await page.locator('.cards').getByRole('link', { name: new RegExp(`^${name} `) }).click();
        await page.getByRole('heading', { level: 2, name: 'The first call' }).waitFor();
        await look(page, `connect-${new URL(page.url()).pathname.split('/').at(-1)}`);
      }
      if (javaScriptEnabled) {
        await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: s.issuer });
        await page.getByText('Without the plugin').click();
        await page.locator('[data-copy="command"]').click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
        assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^claude mcp add --transport http --scope user satchel 'http.*\/mcp'$/);
      }
      const again = async () => { if (!javaScriptEnabled) await page.getByRole('link', { name: 'Check again' }).click(); };
      await again();
      await page.locator('[data-arrivals] [data-none]').waitFor();
      const known = await call(later, s, context);
      assert.match(known, /Ada, not Miss Lovelace/);
      await again();
      await page.locator('[data-arrivals] li:not(.done)', { hasText: 'has called' }).waitFor();
      assert.equal(await page.locator('[data-arrivals] li.done').count(), 0, 'another client ticked the page of Claude Code');
      await look(page, 'connect-another');
      await call(later, s, context, 'Claude Code (satchel)');
      await again();
      await page.locator('[data-arrivals] li.done').waitFor();
      if (javaScriptEnabled) assert.equal(await page.locator('[data-live]').isVisible(), false);
      await look(page, 'connect-ticked');
      await page.getByRole('link', { name: 'Continue', exact: true }).click();
      await at(page, '/');
      await page.getByRole('heading', { level: 1, name: 'Your Satchel' }).waitFor();
      await page.getByText('ada/brain').waitFor();
      await page.getByText('e2e TypeScript SDK').waitFor();
      await look(page, 'overview');
    });

    test('somebody else: everything stays here, and nothing is brought', async () => {
      s.run('user', 'add', 'bob');
      const { page, context } = await person(s.link('--user', 'bob'));
      await press(page, 'Stay local');
      await at(page, '/');
      // An import that may not be: the address is this machine's own.
      await link(page, 'Import').click();
      await page.getByRole('heading', { name: 'A repository' }).click();
      await page.getByLabel('Address of a public git repository').fill('https://localhost/x.git');
      await press(page, 'Import the repository');
      await page.getByRole('alert').filter({ hasText: 'This is not a public address' }).waitFor();
      assert.equal(await page.getByLabel('Address of a public git repository').inputValue(), 'https://localhost/x.git');
      await look(page, 'import-refused');
      await page.goto('/');
      await press(page, 'Start empty');
      await next(page).getByText('Connect a client').first().waitFor();
      await look(page, 'local');
      await next(page).getByRole('link', { name: 'Connect a client' }).click();
      await page.locator('.cards').getByRole('link', { name: /^Any other client / }).click();
      assert.match(await call(later, s, context), /\S/);
      if (!javaScriptEnabled) await page.getByRole('link', { name: 'Check again' }).click();
      await page.locator('[data-arrivals] li.done').waitFor();
      await page.goto('/');
      await page.getByText('Only on this server.').waitFor();
      await look(page, 'overview-local');
    });

    test('the browser had nothing to complain about', () => {
      // A form that was wrong on purpose is an answer of 400.
      const found = opened.flatMap((p) => p.complaints).filter((c) => c.startsWith(s.issuer) && !/status of 400/.test(c));
      assert.deepEqual(found, []);
    });
  });
}
