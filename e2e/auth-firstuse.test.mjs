// The first hour with a server, as people have it in a browser: they sign in with
// the one-time link, add a passkey, connect a client, let others in, and end
// what they no longer want. Every page on the way is judged by axe, light and
// dark, on a phone and on a desk.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { authenticator, judge, launch, missing, open, screenshots, signOut } from './lib/browser.mjs';
import { Provider, connect, sdks } from './lib/oauth-sdk.mjs';
import { allow, awaitRedirect, cleanup, deny, rpc, serve } from './lib/oauth.mjs';

const sdk = sdks['@modelcontextprotocol/sdk'];
const text = (r) => r.content.map((c) => c.text ?? '').join('\n');

describe('first use in Chromium', { skip: missing }, () => {
  const later = cleanup();
  let s;
  let browser;
  let admin; // the first admin's browser
  let guest; // the browser of somebody who is invited
  let shared; // the guest's client's token for the admin's space
  const opened = [];

  // person opens a browser of somebody's own, whose complaints fail the suite.
  const person = async (options) => {
    const p = await open(browser, { baseURL: s.issuer, ...options });
    opened.push(p);
    return p;
  };

  // linked opens a one-time link and presses its button.
  const linked = async (page, link) => {
    await page.goto(link);
    await page.getByRole('button', { name: /^sign in/i }).click();
    await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
  };

  // visit opens a client's request in the person's browser. choose does what the
  // person does with the page of consent.
  const visit = (page, redirect, choose) => async (url) => {
    await page.goto(String(url));
    await choose(page);
    const back = await redirect.next();
    await page.waitForURL((u) => u.origin === new URL(redirect.uri).origin);
    return back;
  };

  before(async () => {
    s = await serve(later);
    browser = await launch(later);
    admin = await person();
  });

  after(later.run);

  test('the admin signs in with the one-time link', async (t) => {
    t.diagnostic(`screenshots are in ${screenshots()}`);
    const { page } = admin;
    const link = s.link();
    await page.goto('/signin');
    await judge(page, 'sign-in');
    await page.goto(link);
    await judge(page, 'link');
    await page.getByRole('button', { name: /^sign in/i }).click();
    await page.waitForURL((u) => u.pathname === '/');
    await judge(page, 'home');
    await page.goto('/connect');
    await judge(page, 'connect');
    assert.ok([s.mcp, s.server.url].includes(await page.getByRole('group', { name: 'The MCP address' }).textContent()));

    // Attack: who finds the link afterwards, in the history or a mailbox.
    const thief = await person();
    const r = await thief.page.goto(link);
    assert.equal(r.status(), 404);
    assert.equal(await thief.page.getByRole('button', { name: /^sign in as/i }).count(), 0);
    await judge(thief.page, 'link-used');
    thief.complaints.length = 0; // that the answer is a 404
    await thief.context.close();
  });

  test('the admin adds a passkey and signs in with it', async () => {
    const { page, context } = admin;
    const stranger = await person();
    await stranger.page.goto('/signin');
    assert.equal(await stranger.page.locator('form[data-passkey]').count(), 0, 'nobody has a passkey yet');
    await judge(stranger.page, 'signin-first');
    await stranger.context.close();
    const key = await authenticator(page);
    await page.goto('/account');
    await judge(page, 'account');
    await page.getByRole('button', { name: /add a passkey|add this device/i }).click();
    await page.getByText('passkey', { exact: true }).waitFor();
    assert.equal((await key.credentials()).length, 1);
    await judge(page, 'account-passkey');

    const before = (await context.cookies()).find((c) => c.name === 'satchel');
    assert.ok(before.httpOnly && before.sameSite === 'Lax');
    await signOut(page);
    await page.waitForURL((u) => u.pathname === '/signin');
    await page.getByRole('button', { name: /passkey/i }).click();
    await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
    await page.goto('/account');
    await page.getByRole('heading', { level: 1, name: /account/i }).waitFor();
    assert.notEqual((await context.cookies()).find((c) => c.name === 'satchel').value, before.value, 'the session did not change');
  });

  test('two tabs use passkeys at once', async () => {
    const { page, context, complaints } = await person();
    await linked(page, s.link());
    const tabs = [page, await context.newPage()];
    const keys = await Promise.all(tabs.map(authenticator));
    // The first tab has its passkey, and says so when the second has finished.
    const both = async (path, button) => {
      let release;
      const held = new Promise((r) => { release = r; });
      await page.route('**/finish', async (r) => { await held; await r.continue(); });
      for (const tab of tabs) await tab.goto(path);
      const done = tabs.map((tab) => tab.waitForResponse((r) => r.url().endsWith('/finish')));
      const landed = tabs.map((tab) => tab.waitForEvent('load')); // where the script goes then
      for (const tab of tabs) {
        const sent = tab.waitForRequest((r) => r.url().endsWith('/finish'));
        await tab.bringToFront();
        const another = tab.getByText('Add another passkey');
        if (await another.count()) await another.click();
        await tab.getByRole('button', { name: button }).click();
        await sent;
      }
      const second = (await done[1]).status();
      release();
      assert.deepEqual([(await done[0]).status(), second], [200, 200]);
      await Promise.all(landed);
      await page.unroute('**/finish');
    };
    await both('/account', /add a passkey/i);
    for (const key of keys) assert.equal((await key.credentials()).length, 1);
    await page.goto('/account');
    await signOut(page);
    await page.waitForURL((u) => u.pathname === '/signin');
    await both('/signin', /passkey/i);
    for (const tab of tabs) assert.equal((await tab.goto('/account')).url(), `${s.issuer}/account`);

    // A page of sign-in that is older than the session goes on to where it led.
    await page.goto('/account');
    await signOut(page);
    await page.waitForURL((u) => u.pathname === '/signin');
    await tabs[1].goto('/signin?return=/connect');
    await page.getByRole('button', { name: /passkey/i }).click();
    await page.waitForURL((u) => u.pathname !== '/signin');
    await tabs[1].getByRole('button', { name: /passkey/i }).click();
    await tabs[1].waitForURL((u) => u.pathname === '/connect');
    assert.deepEqual(complaints.filter((c) => !/status of 403/.test(c)), []);
    complaints.length = 0;
    await context.close();
  });

  test('the admin connects a client, and ends it', async () => {
    const { page } = admin;
    const redirect = await awaitRedirect(later);
    const provider = new Provider({ redirectUrl: redirect.uri });
    const client = await connect(sdk, s.mcp, provider, visit(page, redirect, async () => {
      await judge(page, 'consent');
      await page.getByRole('checkbox', { name: /write/i }).uncheck();
      await page.getByRole('button', { name: allow }).click();
    }));
    try {
      assert.match(text(await client.callTool({ name: 'instructions', arguments: {} })), /\S/);
      assert.equal(provider.tokens().scope, 'read');
      await page.goto('/account');
      await judge(page, 'account-client');
      assert.doesNotMatch(await page.getByRole('listitem').filter({ hasText: 'e2e TypeScript SDK' }).innerText(), /not used yet/);
      await page.getByRole('button', { name: 'Disconnect e2e TypeScript SDK' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click();
      await page.getByText('None yet. Connect one.').waitFor();
      const { status, challenge } = await rpc(s.mcp, provider.tokens().access_token, 'tools/list');
      assert.equal(status, 401);
      assert.match(challenge, /invalid_token/);
    } finally {
      await client.close();
    }
  });

  test('a client that is denied, and a request that is wrong', async () => {
    const { page, complaints } = admin;
    const redirect = await awaitRedirect(later);
    const provider = new Provider({ redirectUrl: redirect.uri });
    let back;
    await assert.rejects(connect(sdk, s.mcp, provider, async (url) => {
      back = await visit(page, redirect, () => page.getByRole('button', { name: deny }).click())(url);
      const wrong = new URL(url);
      wrong.searchParams.set('redirect_uri', 'https://evil.example/');
      assert.equal((await page.goto(String(wrong))).status(), 400);
      assert.equal(new URL(page.url()).origin, s.issuer);
      await judge(page, 'consent-wrong');
      complaints.length = 0; // that the answer is a 400
      return back;
    }));
    assert.equal(back.searchParams.get('error'), 'access_denied');
    assert.equal(back.searchParams.get('iss'), s.issuer);
  });

  test('a hosted client, and a program with a scheme of its own', async () => {
    const { context, complaints } = admin;
    let page = await context.newPage();
    // Nobody asks the real one: the browser finds no other host. That it may go
    // there at all is what the policy of the page of consent decides.
    await context.route('https://claude.ai/**', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>Connected</title>' }));
    const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
    const ask = (client, redirect) => page.goto(`/oauth/authorize?${new URLSearchParams({
      response_type: 'code', client_id: client, redirect_uri: redirect, state: 'x', code_challenge: challenge, code_challenge_method: 'S256', resource: s.mcp })}`);
    await ask('https://claude.ai/oauth/mcp-oauth-client-metadata', 'https://claude.ai/api/mcp/auth_callback');
    await page.getByText('claude.ai', { exact: true }).waitFor();
    await judge(page, 'consent-known');
    await page.getByRole('button', { name: allow }).click();
    await page.waitForURL('https://claude.ai/api/mcp/auth_callback?**');
    const back = new URL(page.url());
    assert.match(back.searchParams.get('code'), /^satchel_ac_/);
    assert.equal(back.searchParams.get('iss'), s.issuer);
    await page.close();

    // A program's own scheme, to which only a page can lead.
    page = await context.newPage();
    const { client_id } = await (await fetch(`${s.issuer}/oauth/register`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ client_name: 'Cursor', redirect_uris: ['cursor://anysphere.cursor-mcp/oauth/callback'], token_endpoint_auth_method: 'none' }),
    })).json();
    await ask(client_id, 'cursor://anysphere.cursor-mcp/oauth/callback');
    await judge(page, 'consent-program');
    await page.getByRole('button', { name: allow }).click();
    const link = page.getByRole('link', { name: /open cursor/i });
    assert.match(await link.getAttribute('href'), /^cursor:\/\/anysphere\.cursor-mcp\/oauth\/callback\?code=satchel_ac_/);
    await judge(page, 'leave');
    await page.close();
    // That nothing opens cursor: here.
    complaints.splice(0, complaints.length, ...complaints.filter((c) => !c.includes('does not have a registered handler')));
  });

  test('somebody accepts an invitation with a passkey, and connects a client', async () => {
    const docs = join(s.data, 'notes');
    mkdirSync(docs);
    writeFileSync(join(docs, 'team.md'), '# Team\n\nThe team meets on Tuesdays.\n');
    s.run('space', 'import', docs, '--user', 'admin');
    const { url } = s.run('invite', 'create', '--share', '--role', 'reader', '--note', 'Ben');
    guest = await person();
    const { page } = guest;
    const key = await authenticator(page);
    await page.goto(url);
    await judge(page, 'invitation');
    await page.getByRole('textbox', { name: /name/i }).fill('Ben');
    await page.getByRole('button', { name: 'Join', exact: true }).click();
    await page.getByRole('textbox', { name: /name/i }).fill('ben');
    await page.getByRole('button', { name: 'Join', exact: true }).click();
    await page.waitForURL((u) => u.pathname === '/welcome');
    await judge(page, 'welcome');
    await page.getByRole('button', { name: /passkey/i }).click();
    await page.waitForURL((u) => u.pathname !== '/welcome');
    assert.equal((await key.credentials()).length, 1);
    await page.goto('/account');
    await page.getByText('passkey', { exact: true }).waitFor();
    await judge(page, 'account-guest');

    // They have a space of their own, and this client reads the admin's.
    const redirect = await awaitRedirect(later);
    const provider = new Provider({ redirectUrl: redirect.uri });
    const client = await connect(sdk, s.mcp, provider, visit(page, redirect, async () => {
      await judge(page, 'consent-two-spaces');
      await page.getByRole('radio').nth(1).check();
      await page.getByRole('button', { name: allow }).click();
    }));
    try {
      assert.equal(provider.tokens().scope, 'read'); // a reader's client cannot have more
      assert.match(text(await client.callTool({ name: 'search', arguments: { query: 'When does the team meet?' } })), /Tuesdays/);
      shared = provider.tokens().access_token;
    } finally {
      await client.close();
    }

    // Attack: accept it again.
    const thief = await person();
    assert.ok((await thief.page.goto(url)).status() >= 400);
    await judge(thief.page, 'invitation-used');
    thief.complaints.length = 0;
    await thief.context.close();
  });

  test('the admin sees people, and the space its members', async () => {
    const { page } = admin;
    await page.goto('/admin');
    await page.getByText('ben').first().waitFor();
    await judge(page, 'people');
    await page.getByLabel('More for ben').click();
    await page.getByRole('button', { name: 'Make a sign-in link' }).click();
    assert.match(await page.getByLabel('The sign-in link for ben').inputValue(), /\/signin\/link\/satchel_/);
    await judge(page, 'people-link');
    // Attack: who comes to the browser afterwards.
    assert.equal((await page.reload()).status(), 404);
    admin.complaints.length = 0;
    await page.goto('/account');
    await page.locator('main a[href^="/spaces/"]').first().click();
    await page.getByRole('link', { name: 'Members', exact: true }).click();
    await page.getByText('ben').first().waitFor();
    await judge(page, 'space');
    assert.equal((await rpc(s.mcp, shared, 'tools/list')).status, 200);
    await page.getByLabel('More for ben').click();
    await page.getByRole('button', { name: 'Remove…' }).click();
    await judge(page, 'space-remove');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove ben' }).click();
    await page.waitForURL((u) => u.searchParams.get('done') === 'removed');
    assert.equal((await rpc(s.mcp, shared, 'tools/list')).status, 401);

    // A guest is no admin: for them the page does not exist.
    assert.equal((await guest.page.goto('/admin')).status(), 404);
    guest.complaints.length = 0;
  });

  test('all of it with the keyboard', async () => {
    const { page } = admin;
    await page.goto('/account');
    await page.keyboard.press('Tab');
    await page.waitForFunction(() => /skip/i.test(document.activeElement.textContent));
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement.id === 'main');
  });

  test('without scripts: sign in by link, and consent', async () => {
    const { page, context } = await person({ javaScriptEnabled: false });
    const redirect = await awaitRedirect(later);
    const provider = new Provider({ redirectUrl: redirect.uri });
    const client = await connect(sdk, s.mcp, provider, async (url) => {
      await page.goto(String(url));
      assert.equal(new URL(page.url()).pathname, '/signin');
      // The link is opened beside, and leads to what the client waits for.
      const beside = await context.newPage();
      await beside.goto(s.link());
      await beside.getByRole('button', { name: /^sign in/i }).click();
      await beside.waitForURL((u) => u.pathname === '/oauth/authorize');
      await beside.getByRole('button', { name: allow }).click();
      return redirect.next();
    });
    try {
      assert.match(text(await client.callTool({ name: 'instructions', arguments: {} })), /\S/);
    } finally {
      await client.close();
    }
    await context.close();
  });

  test('the browser had nothing to complain about', () => {
    const found = opened.flatMap((p) => p.complaints).filter((c) => c.startsWith(s.issuer));
    assert.deepEqual(found, []);
  });
});
