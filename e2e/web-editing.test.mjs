// People change what their space holds, in a browser: they create, edit, upload,
// move and delete files, meet an AI that edits the same file, and correct what
// their AIs know. Every page on the way is judged by axe, light and dark, on a
// phone and on a desk; and all of it works without JavaScript.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open, screenshots } from './lib/browser.mjs';
import { sdkV1 } from './lib/clients.mjs';
import { cleanup, serve } from './lib/oauth.mjs';

const day = (d) => d.toISOString().slice(0, 10);

for (const javaScriptEnabled of [true, false]) {
  const suite = javaScriptEnabled ? 'editing in Chromium' : 'editing without JavaScript';
  describe(suite, { skip: missing }, () => {
    const later = cleanup();
    let s;
    let page;
    let person;
    let space; // the address of the admin's space
    let ai; // a client's bash

    // look judges a page by axe, for which scripts must run.
    const look = async (name) => { if (javaScriptEnabled) await judge(page, `editing-${name}`); };
    const heading = (name) => page.getByRole('heading', { level: 1, name }).waitFor();
    const button = (name) => page.getByRole('button', { name, exact: true });
    // The editor stands in place of the field of the text, which keeps the text for the form.
    const text = () => page.locator('#text').inputValue();
    const type = async (value) => {
      if (!javaScriptEnabled) {
        await page.locator('#text').fill(value);
        return;
      }
      await page.locator('.cm-content').focus();
      await page.keyboard.press('Control+a');
      await page.keyboard.press('Delete');
      await page.keyboard.insertText(value);
    };
    const raw = async (path) => {
      const r = await page.request.get(`${space}/raw/${path}`);
      return r.ok() ? (await r.body()).toString() : null;
    };
    // refused is what the browser says of an answer that is an error.
    const expectError = (status) => {
      const i = person.complaints.findIndex((c) => c.includes(`status of ${status}`));
      if (i >= 0) person.complaints.splice(i, 1);
    };

    before(async () => {
      s = await serve(later, { env: { SATCHEL_SANDBOX_RUNTIME: 'gvisor' } });
      const client = await sdkV1(s.mcp, s.server.firstKey());
      later(() => client.close());
      ai = async (command) => {
        const r = await client.call('bash', { command });
        assert.ok(!r.isError, JSON.stringify(r.content));
      };
      const browser = await launch(later);
      person = await open(browser, { baseURL: s.issuer, javaScriptEnabled });
      page = person.page;
      await page.goto(s.link());
      await button(/^sign in/i).or(page.getByRole('button', { name: /^sign in/i })).first().click();
      await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
      const href = await page.getByRole('link', { name: 'Files', exact: true }).getAttribute('href');
      space = href.replace(/\/files\/$/, '');
    });

    after(async () => {
      await later.run();
      assert.deepEqual(person?.complaints ?? [], []);
    });

    test('create a file', async (t) => {
      t.diagnostic(`screenshots are in ${screenshots()}`);
      await page.goto(`${space}/new`);
      await page.getByRole('link', { name: /^note/i }).click();
      await look('new');
      await page.getByLabel('Path').fill('../bread.md');
      await type('# Bread\n\n- 500 g flour\n- 350 g water\n- 10 g salt\n\nBake it for 45 minutes.\n\nLet it cool down.\n');
      await button('Preview').click();
      await page.getByRole('heading', { name: 'Preview' }).waitFor();
      await button('Create the file').click();
      await page.getByRole('alert').getByText('cannot contain').waitFor();
      expectError(422);
      await look('new-refused');
      assert.match(await text(), /500 g flour/);
      await page.getByLabel('Path').fill('knowledge/cooking/bread.md');
      await page.getByLabel('Note for the history').fill('How we bake');
      await button('Create the file').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/knowledge/cooking/bread.md'));
      assert.match(await raw('knowledge/cooking/bread.md'), /^# Bread\n\n- 500 g flour\n/);
    });

    test('edit it, and preview', async () => {
      await page.goto(`${space}/edit/knowledge/cooking/bread.md`);
      await look('edit');
      await type((await text()).replace('500 g', '550 g'));
      await button('Preview').click();
      await page.locator('.preview').getByText('550 g flour').waitFor();
      await look('preview');
      assert.match(await raw('knowledge/cooking/bread.md'), /500 g/);
      await page.getByLabel('Note for the history').fill('More flour');
      if (javaScriptEnabled) await page.keyboard.press('Control+s');
      else await button('Save').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/knowledge/cooking/bread.md'));
      assert.match(await raw('knowledge/cooking/bread.md'), /550 g/);
    });

    test('an AI edits the same file meanwhile, elsewhere and in the same line', async () => {
      await page.goto(`${space}/edit/knowledge/cooking/bread.md`);
      await type((await text()).replace('550 g flour', '600 g flour'));
      await ai("sed -i 's/Let it cool down/Let it cool for an hour/' knowledge/cooking/bread.md");
      await button('Save').click();
      await heading(/changed while you edited it/);
      expectError(409);
      await look('conflict-merged');
      assert.match(await text(), /600 g flour[\s\S]*cool for an hour/);
      assert.match(await raw('knowledge/cooking/bread.md'), /550 g flour[\s\S]*cool for an hour/);
      // And again, before it is saved.
      await ai("sed -i 's/550 g flour/575 g of flour/' knowledge/cooking/bread.md");
      await button('Save').click();
      await page.getByRole('alert').getByText('somebody else changed the same lines').waitFor();
      expectError(409);
      await look('conflict-marked');
      if (javaScriptEnabled) {
        await page.getByRole('alert').getByRole('link', { name: 'Go to the first mark' }).click();
        await page.locator('.cm-content:focus').waitFor();
        await page.waitForFunction((e) => { const r = e.getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; }, await page.locator('.cm-mark').first().elementHandle());
      }
      const value = await text();
      assert.match(value, /600 g flour[\s\S]*575 g of flour/);
      await button('Save').click();
      await page.getByRole('alert').getByText('one place still has marks').waitFor();
      expectError(422);
      await look('conflict-marks-left');
      if (javaScriptEnabled) await button('Keep yours').click();
      else await type(value.split('\n').filter((l) => !/^(▼▼▼|■■■|▲▲▲)/.test(l) && !l.includes('575 g')).join('\n'));
      await button('Save').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/knowledge/cooking/bread.md'));
      const now = await raw('knowledge/cooking/bread.md');
      assert.match(now, /^# Bread\n\n- 600 g flour\n- 350 g water/);
      assert.match(now, /cool for an hour\.\n$/);
    });

    test('a page with unsaved text asks before it is left', { skip: !javaScriptEnabled }, async () => {
      await page.goto(`${space}/edit/knowledge/cooking/bread.md`);
      await page.locator('.cm-content').pressSequentially('x');
      const asked = page.waitForEvent('dialog');
      const going = page.goto(`${space}/memory`).catch(() => {});
      const dialog = await asked;
      assert.equal(dialog.type(), 'beforeunload');
      await dialog.accept();
      await going;
      await page.goto(`${space}/memory`);
    });

    test('upload files, and replace one', async () => {
      await page.goto(`${space}/upload?dir=pictures`);
      await look('upload');
      const file = (name, text) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(text) });
      await page.getByLabel('Files').setInputFiles([file('one.txt', 'one'), file('zwei ü.txt', 'two')]);
      await button('Upload').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/pictures/'));
      assert.equal(await raw('pictures/one.txt'), 'one');
      assert.equal(await raw(encodeURI('pictures/zwei ü.txt')), 'two');

      await page.goto(`${space}/upload?dir=pictures`);
      await page.getByLabel('Files').setInputFiles([file('one.txt', 'ONE'), file('three.txt', 'three')]);
      await button('Upload').click();
      await page.getByRole('alert').getByText('one.txt already exists and was not replaced').waitFor();
      expectError(422);
      await look('upload-taken');
      assert.equal(await raw('pictures/one.txt'), 'one');
      assert.equal(await raw('pictures/three.txt'), 'three');
      await page.getByRole('checkbox', { name: /replace one\.txt/i }).check();
      await page.getByLabel('Files').setInputFiles([file('one.txt', 'ONE')]);
      await button('Upload').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/pictures/'));
      assert.equal(await raw('pictures/one.txt'), 'ONE');
    });

    test('move a file and a directory', async () => {
      await page.goto(`${space}/rename/pictures/one.txt`);
      await look('rename');
      await page.getByLabel('New path').fill('pictures/three.txt');
      await button('Move the file').click();
      await page.getByRole('alert').getByText('already').waitFor();
      expectError(409);
      await page.getByLabel('New path').fill('pictures/first.txt');
      await button('Move the file').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/pictures/first.txt'));
      await page.goto(`${space}/rename/pictures`);
      await look('rename-directory');
      await page.getByLabel('New path').fill('resources/files');
      await button('Move the directory').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/resources/files/'));
      assert.equal(await raw('resources/files/first.txt'), 'ONE');
      assert.equal(await raw('pictures/first.txt'), null);
    });

    test('delete a directory and a file', async () => {
      await page.goto(`${space}/delete/resources/files`);
      await page.getByText('3 files', { exact: true }).waitFor();
      await look('delete-directory');
      await button('Delete the directory').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/resources/'));
      await page.goto(`${space}/delete/knowledge/cooking/bread.md`);
      await look('delete');
      await button('Delete the file').click();
      await page.waitForURL((u) => u.pathname.endsWith('/files/knowledge/'));
      assert.equal(await raw('knowledge/cooking/bread.md'), null);
    });

    test('memory facts: add, correct, confirm, forget, and one that is damaged', async () => {
      await page.goto(`${space}/memory`);
      await look('memory-empty');
      await page.getByRole('link', { name: 'Add the first fact' }).click();
      await heading('Add a fact');
      await page.getByLabel('Name').fill('Text editor');
      await page.getByRole('textbox', { name: 'Fact' }).fill('Uses Helix');
      await look('fact-new');
      await button('Add the fact').click();
      await heading('Memory');
      await page.getByRole('link', { name: 'Uses Helix' }).waitFor();

      await ai(`mkdir -p memory/person memory/project
        printf -- '---\\nvalue: Ann leads the design team\\nconfidence: 0.7\\nsource: inferred\\nclient: Claude\\nfirst_seen: 2026-01-05\\nlast_confirmed: 2026-02-01\\n---\\nShe said so in a meeting.\\n' > memory/person/ann.md
        printf -- '---\\nvalue: The launch is in spring\\nsource: imported\\nexpires: 2026-06-30\\n---\\n' > memory/project/launch.md
        printf -- 'Bob\\n' > memory/person/bob.md`);
      await page.goto(`${space}/memory`);
      await page.getByText('Damaged fact files').waitFor();
      await look('memory');
      await page.getByRole('link', { name: 'Ann leads the design team' }).click();
      await heading('Ann leads the design team');
      await look('fact');
      await page.getByRole('textbox', { name: 'Fact' }).fill('Ann leads the research team');
      const before = day(new Date());
      await button('Save').click();
      await page.getByRole('link', { name: 'Ann leads the research team' }).waitFor();
      const fact = (today) => `---\nvalue: Ann leads the research team\nconfidence: 1\nsource: user_explicit\nclient: browser\nfirst_seen: 2026-01-05\nlast_confirmed: ${today}\ntool: web\n---\nShe said so in a meeting.\n`;
      const corrected = await raw('memory/person/ann.md');
      assert.ok([before, day(new Date())].some((today) => corrected === fact(today)), corrected);

      await page.getByRole('searchbox', { name: 'Find' }).fill('helix');
      await button('Filter').click();
      await page.getByText('One fact matches.').waitFor();
      assert.equal(await page.getByText('Ann leads').count(), 0);
      await page.getByRole('link', { name: /has expired/ }).click();
      await heading('Expired facts');
      await look('memory-expired');
      await page.getByRole('button', { name: /^keep/i }).click();
      await heading('Expired facts');
      await page.goto(`${space}/memory`);
      await page.getByText('The launch is in spring').waitFor();
      assert.doesNotMatch(await raw('memory/project/launch.md'), /expires/);

      await page.getByRole('row').filter({ hasText: 'Uses Helix' }).getByRole('button', { name: /^forget/i }).click();
      await heading('Memory');
      assert.equal(await page.getByText('Uses Helix').count(), 0);
      assert.equal(await raw('memory/preference/text-editor.md'), null);

      await page.getByRole('link', { name: /^edit the file/i }).click();
      await heading('Edit bob.md');
      await type('---\nvalue: Bob is a friend\n---\n');
      await button('Save').click();
      await page.goto(`${space}/memory`);
      await page.getByText('Bob is a friend').waitFor();
      assert.equal(await page.getByText('Damaged fact files').count(), 0);
    });
  });
}
