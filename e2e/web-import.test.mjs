// A person imports a folder with subfolders from Home, with scripts and without: they choose or drop
// it, look at what the import would do, import it as one change, and undo that change.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open, screenshots } from './lib/browser.mjs';
import { cleanup, serve } from './lib/oauth.mjs';
import { remove, tempDir } from './lib/server.mjs';

// folder makes a folder of 50 pages with subfolders, and hidden files.
function folder(later) {
  const dir = tempDir('satchel-folder-');
  later(() => remove(dir));
  const root = join(dir, 'my notes');
  const put = (path, content) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  for (let i = 0; i < 50; i++) put(`${['', 'projects/', 'projects/satchel/plans/', 'Bücher & more/'][i % 4]}page ${i}.md`, `# Page ${i}\n\nA line of page ${i}.\n`);
  put('.obsidian/app.json', '{}');
  put('.git/config', '[core]\n');
  return root;
}

for (const javaScriptEnabled of [true, false]) {
  describe(`importing a folder, ${javaScriptEnabled ? 'with' : 'without'} scripts`, { skip: missing }, () => {
    const later = cleanup();
    let page;
    let complaints;
    let root;
    let space;
    let clicks;

    const look = (name) => javaScriptEnabled && judge(page, `import-${name}`);
    const click = async (locator) => {
      clicks++;
      await locator.click();
    };
    const button = (name) => page.getByRole('main').getByRole('button', { name, exact: true });
    const heading = (name) => page.getByRole('heading', { level: 1, name }).waitFor();
    // drop drops folders on an element, as a file manager does.
    const drop = async (element, paths = [root]) => {
      await element.scrollIntoViewIfNeeded();
      const box = await element.boundingBox();
      const cdp = await page.context().newCDPSession(page);
      const at = { x: box.x + box.width / 2, y: box.y + 20, data: { items: [], files: paths, dragOperationsMask: 1 } };
      for (const type of ['dragEnter', 'dragOver', 'drop']) await cdp.send('Input.dispatchDragEvent', { type, ...at });
    };
    const counts = () => page.getByRole('table').locator('tbody td').allTextContents();

    before(async () => {
      const s = await serve(later);
      root = folder(later);
      ({ page, complaints } = await open(await launch(later), { baseURL: s.issuer, javaScriptEnabled }));
      await page.goto(s.link());
      await page.getByRole('button', { name: /^sign in/i }).click();
      await page.waitForURL((u) => u.pathname === '/');
    });

    after(later.run);

    test('a look at what the import would do changes nothing', async (t) => {
      t.diagnostic(`screenshots are in ${screenshots()}`);
      await page.getByRole('main').getByRole('link', { name: 'Import', exact: true }).first().click();
      await heading('Import');
      space = new URL(page.url()).pathname.replace('/bring', '');
      await look('form');
      await page.getByLabel('Folder on this device').setInputFiles(root);
      if (javaScriptEnabled) {
        await page.getByText('my notes: 50 files').waitFor();
        await look('chosen');
      }
      await button('Preview the import').first().click();
      await heading('Preview of the import');
      assert.deepEqual(await counts(), ['50', '0', '0']);
      await look('preview');
      await page.getByRole('link', { name: 'Go back' }).click();
      await heading('Import');
      if (javaScriptEnabled) await page.getByText('my notes: 50 files').waitFor();
      assert.equal((await page.request.get(`${space}/files/my%20notes/`)).status(), 404);
    });

    test('from Home to the imported folder in at most five clicks, as one change', async () => {
      clicks = 0;
      await page.goto('/');
      await click(page.getByRole('main').getByRole('link', { name: 'Import', exact: true }).first());
      const chooser = page.waitForEvent('filechooser');
      await click(page.getByLabel('Folder on this device'));
      await (await chooser).setFiles(root);
      await click(button('Import the folder'));
      await heading('Imported');
      assert.deepEqual(await counts(), ['50', '0', '0']);
      await look('done');
      await click(page.getByRole('link', { name: 'See the files' }));
      await heading('my notes');
      assert.ok(clicks <= 5, `it took ${clicks} clicks`);
      for (const path of ['page%200.md', 'projects/page%201.md', 'projects/satchel/plans/page%202.md', 'B%C3%BCcher%20&%20more/page%203.md']) {
        const raw = await page.request.get(`${space}/raw/my%20notes/${path}`);
        assert.match(await raw.text(), /^# Page \d\n/, path);
      }
      assert.equal((await page.request.get(`${space}/files/my%20notes/.git/config`)).status(), 404);
    });

    test('the same folder again changes nothing', async () => {
      await page.goto(`${space}/bring`);
      await page.getByLabel('Folder on this device').setInputFiles(root);
      await button('Import the folder').click();
      await page.getByText('Nothing was changed').waitFor();
      assert.deepEqual(await counts(), ['0', '0', '50']);
    });

    test('a dropped folder is imported like a chosen one', { skip: !javaScriptEnabled }, async () => {
      await page.goto(`${space}/bring`);
      await drop(page.locator('form[data-upload]').first());
      await page.getByText('my notes: 50 files').waitFor();
      await page.getByText('More settings').first().click();
      await page.getByLabel('Into the directory').fill('archive');
      await button('Import the folder').click();
      await heading('Imported');
      assert.deepEqual(await counts(), ['50', '0', '0']);
      assert.match(await (await page.request.get(`${space}/raw/archive/my%20notes/projects/page%201.md`)).text(), /^# Page 1\n/);
    });

    test('two dropped folders are both named', { skip: !javaScriptEnabled }, async () => {
      await page.goto(`${space}/bring`);
      await drop(page.locator('form[data-upload]').first(), [join(root, 'projects'), join(root, 'Bücher & more')]);
      await page.getByText('projects, Bücher & more: ').waitFor();
      await button('Preview the import').first().click();
      await heading('Preview of the import');
      await page.getByText('projects, Bücher & more').waitFor();
    });

    test('a folder that is dropped on a directory is led to the page Import', { skip: !javaScriptEnabled }, async () => {
      await page.goto(`${space}/files/archive/`);
      await drop(page.getByRole('table'));
      await heading('Import');
      assert.equal(await page.getByLabel('Into the directory').inputValue(), 'archive');
    });

    test('after the look, the folder is imported without choosing it again, and the change is undone', { skip: !javaScriptEnabled }, async () => {
      await page.goto(`${space}/bring`);
      await page.getByLabel('Folder on this device').setInputFiles(root);
      await page.getByText('More settings').first().click();
      await page.getByLabel('Into the directory').fill('again');
      await button('Preview the import').first().click();
      await heading('Preview of the import');
      await button('Import the folder').click();
      await heading('Imported');
      await page.getByRole('button', { name: 'Undo', exact: true }).click();
      await page.getByRole('status').getByText('The change was undone').waitFor();
      assert.equal((await page.request.get(`${space}/files/again/`)).status(), 404);
    });

    test('a wrong directory keeps the chosen folder', { skip: !javaScriptEnabled }, async () => {
      await page.goto(`${space}/bring`);
      await page.getByLabel('Folder on this device').setInputFiles(root);
      await page.getByText('More settings').first().click();
      await page.getByLabel('Into the directory').fill('../elsewhere');
      await button('Import the folder').click();
      await page.getByRole('alert').waitFor();
      await look('wrong');
      await page.getByText('my notes: 50 files').waitFor();
      await page.getByLabel('Into the directory').fill('elsewhere');
      await button('Import the folder').click();
      await heading('Imported');
      complaints.splice(0, complaints.length, ...complaints.filter((c) => !c.includes('400')));
    });

    test('the pages are compressed', async () => {
      const r = await page.goto(`${space}/files/my%20notes/`);
      assert.equal((await r.allHeaders())['content-encoding'], 'gzip');
    });

    test('the browser had nothing to complain about', () => {
      assert.deepEqual(complaints, []);
    });
  });
}
