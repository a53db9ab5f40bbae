// The daily tasks of a person on Home, Memory and Activity: see what an AI changed and undo it in
// one click, undo the undo, find a fact and correct it in place, repair a damaged file, and
// dismiss the first steps. The AI is a real client with a real sandbox.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open, screenshots } from './lib/browser.mjs';
import { sdkV1 } from './lib/clients.mjs';
import { cleanup, serve } from './lib/oauth.mjs';

const text = (r) => r.content.map((c) => c.text ?? '').join('\n');

for (const javaScriptEnabled of [true, false]) {
  describe(`home, memory and activity, ${javaScriptEnabled ? 'with' : 'without'} scripts`, { skip: missing }, () => {
    const later = cleanup();
    let s;
    let client;
    let page;
    let complaints;

    const look = (name) => javaScriptEnabled && judge(page, name);
    const link = (name) => page.getByRole('link', { name });
    const button = (name) => page.getByRole('button', { name });
    const place = (name) => page.getByRole('navigation').getByRole('link', { name, exact: true }).first();
    const status = (like) => page.getByRole('status').filter({ hasText: like });

    const bash = async (command, comment) => {
      const r = await client.call('bash', { command, ...(comment ? { comment } : {}) });
      assert.ok(!r.isError, text(r));
      return text(r);
    };

    before(async () => {
      s = await serve(later, { env: { SATCHEL_SANDBOX_RUNTIME: 'gvisor' } });
      client = await sdkV1(s.server.url, s.server.firstKey());
      later(() => client.close());
      const browser = await launch(later);
      ({ page, complaints } = await open(browser, { baseURL: s.issuer, javaScriptEnabled }));
      await page.goto(s.link());
      await button(/^sign in/i).click();
      await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
    });

    after(later.run);

    test('the first steps stay until the person dismisses them', async (t) => {
      t.diagnostic(`screenshots are in ${screenshots()}`);
      await bash('mkdir -p knowledge && echo "# Plan" > knowledge/plan.md', 'Note the plan');
      await page.goto('/');
      const steps = page.getByRole('region', { name: /^first steps/i });
      await steps.waitFor();
      await look('home-steps');
      await page.reload();
      await steps.getByRole('button', { name: /^dismiss/i }).click();
      await page.getByRole('region', { name: 'Recent changes' }).waitFor();
      assert.equal(await steps.count(), 0);
      await page.reload();
      assert.equal(await steps.count(), 0, 'they are back');
    });

    test('what an AI changed today is undone in one click, and so is the undo', async () => {
      await bash('echo "- step one" >> knowledge/plan.md', 'Add step one');
      await bash('echo oops > knowledge/oops.md; echo "- wrong" >> knowledge/plan.md', 'Go wrong');
      await page.goto('/');
      const week = page.getByRole('region', { name: 'Changes by your AIs' });
      await week.getByRole('img').waitFor();
      await look('home');
      await week.getByRole('table').getByRole('link').first().click();
      await page.getByRole('heading', { level: 1, name: 'Activity' }).waitFor();
      await page.locator('#changes').getByRole('link', { name: 'Go wrong', exact: true }).waitFor();
      await look('activity-client');
      await button(/^Undo these/).click();
      await status(/undone and stay/).waitFor();
      await look('activity-undone');
      assert.doesNotMatch(await bash('ls knowledge 2>&1; true'), /oops|plan/);
      await page.locator('.toast').getByRole('button').click();
      await status('What was undone is back').waitFor();
      assert.match(await bash('cat knowledge/plan.md; ls knowledge'), /step one[^]*wrong[^]*oops/);
      // A conversation has a button of its own.
      await page.locator('.turn').getByRole('button').first().click();
      await status(/undone and stay/).waitFor();
      assert.doesNotMatch(await bash('ls knowledge 2>&1; true'), /oops/);
    });

    test('a fact is found, corrected in place, forgotten and brought back', async () => {
      await place('Memory').click();
      await page.getByRole('heading', { level: 1, name: 'Memory' }).waitFor();
      await look('memory-none');
      await bash(`mkdir -p memory/person memory/preference
        printf -- '---\\nvalue: Ann leads the design team\\nconfidence: 0.6\\nsource: inferred\\nclient: Claude\\nfirst_seen: 2026-01-05\\n---\\n' > memory/person/ann.md
        printf -- '---\\nvalue: Prefers window seats\\nsource: user_explicit\\nclient: ChatGPT\\n---\\n' > memory/preference/seat.md
        printf -- '---\\nvalue: Likes: tea\\n---\\n' > memory/preference/tea.md; echo 'Bob is a friend' > memory/bob.md`);
      await page.reload();
      await page.getByRole('region', { name: 'Not confirmed yet' }).getByText('Ann leads the design team').waitFor();
      await look('memory-facts');
      await page.getByRole('searchbox', { name: 'Find' }).fill('design');
      await button('Filter').click();
      await link('Edit person/ann').click();
      const value = page.getByLabel('person/ann');
      await value.waitFor();
      if (javaScriptEnabled) assert.ok(await value.evaluate((e) => e === document.activeElement), 'the keyboard is elsewhere');
      await look('memory-edit');
      await value.fill('Ann leads the research team');
      await page.getByLabel('How certain are you?').selectOption('Likely');
      await button('Save').click();
      await status('Saved: “Ann leads the research team”.').waitFor();
      assert.match(await bash('cat memory/person/ann.md'), /Ann leads the research team\nconfidence: 0.8\nsource: user_explicit/);
      await button('Undo').click();
      await status('Undone.').waitFor();
      assert.match(await bash('cat memory/person/ann.md'), /design team/);
      await page.getByRole('row').filter({ hasText: 'Prefers window seats' }).getByRole('button', { name: /^forget/i }).click();
      await status('Forgotten: preference/seat.').waitFor();
      await button('Undo').click();
      await page.getByRole('row').filter({ hasText: 'Prefers window seats' }).waitFor();
    });

    test('damaged and misplaced files are repaired with a button', async () => {
      await place('Home').click();
      await page.getByRole('region', { name: 'Needs your attention' }).getByRole('link', { name: /^repair/i }).click();
      const damaged = page.getByRole('region', { name: 'Damaged fact files' });
      await damaged.getByRole('button', { name: 'Repair memory/preference/tea.md' }).click();
      await status('Repaired: “Likes: tea”.').waitFor();
      await damaged.getByRole('button', { name: 'Repair memory/bob.md' }).click();
      await status('Repaired: “Bob is a friend”.').waitFor();
      await look('memory-repaired');
      assert.equal(await damaged.count(), 0);
      assert.match(await bash('cat memory/preference/tea.md memory/note/bob.md; ls memory'), /value: "?Likes: tea[^]*value: Bob is a friend/);
      await button('Undo').click();
      await damaged.getByRole('button', { name: 'Repair memory/bob.md' }).waitFor();
    });

    test('the browser had nothing to complain about', () => {
      assert.deepEqual(complaints.filter((c) => c.startsWith(s.issuer)), []);
    });
  });
}
