// People read what their space holds and held, in a browser: directories, pages,
// code, pictures, history, differences and search; they bring back an old version
// and take everything with them. Every page is judged by axe, light and dark, on
// a phone and on a desk; and all of it works without JavaScript.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { judge, launch, missing, open, screenshots, shown } from './lib/browser.mjs';
import { git } from './lib/git.mjs';
import { cleanup, serve } from './lib/oauth.mjs';
import { remove, tempDir } from './lib/server.mjs';
import { until } from './lib/until.mjs';

const deploy = (last) => `---
title: Deploying the shop
description: How a release gets out, and back.
tags: [ops, release]
owner: Grace
---
# Deploying the shop

Releases leave on **Tuesdays**, from \`main\`. Ask [Grace](../people/grace.md) before you change the window, and read the [checklist](checklist.md).

## Steps

1. Run the tests
2. Tag the release
3. Watch the [dashboard](https://status.example.com/)

- [x] Backups are fresh
- [ ] Somebody is on call

\`\`\`go
// release returns the version that goes out.
func release(tags []string) (string, error) {
	if len(tags) == 0 {
		return "", errors.New("no tag") // 404
	}
	return tags[0], nil
}
\`\`\`

> Never on a Friday.

| Stage | Minutes | Who |
| --- | ---: | --- |
| Build | 4 | CI |
| Canary | 20 | Grace |

### Rolling back

Press <kbd>Ctrl</kbd> + <kbd>C</kbd>, ${last}.

<details>
<summary>What went wrong in March</summary>

The canary was *red*.

</details>

## Who may deploy

Everybody, on weekdays.

![The pipeline](pipeline.png)

<p align="center"><img src="pipeline.png" alt="small" width="8"></p>
`;

const files = {
  'README.md': '# The shop\n\nWhat the team and its AIs know. Start with [deploying](knowledge/deploy.md).\n',
  'knowledge/deploy.md': deploy('then call the pager'),
  'knowledge/checklist.md': '# Checklist\n\n- Say it aloud\n- Push\n',
  'people/grace.md': '# Grace\n\nOn call this week.\n',
  'src/main.go': 'package main\n\nimport "fmt"\n\n// main says hello.\nfunc main() {\n\tfmt.Println("hello", 42)\n}\n',
  'src/style.css': 'a { color: #0a5; } /* green */\n',
  'run.sh': '#!/bin/sh\n# Starts it.\nexec go run ./src "$@"\n',
  'memory/context.md': '# Context\n\nWe sell bread.\n',
};

const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFElEQVR42mNk+M/wn4EIwDiqEAAbNQP5b6xGVgAAAABJRU5ErkJggg==', 'base64');

for (const javaScriptEnabled of [true, false]) {
  describe(javaScriptEnabled ? 'files in Chromium' : 'files without JavaScript', { skip: missing }, () => {
    const later = cleanup();
    let s;
    let page;
    let person;
    let space;
    const look = async (name) => { if (javaScriptEnabled) await judge(page, `files-${name}`); };
    const tree = () => page.getByRole('navigation', { name: 'Files of this space' });
    // more chooses an entry of the menu of the file.
    const more = async (name) => {
      await page.locator('summary[aria-label="More for this file"]').click();
      await page.locator('details.menu').getByRole('link', { name }).click();
    };
    const heading = (name) => page.getByRole('heading', { level: 1, name }).waitFor();

    before(async () => {
      s = await serve(later);
      const work = tempDir('satchel-files-');
      later(() => remove(work));
      git(work, 'init', '-q', '-b', 'main');
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(work, path)), { recursive: true });
        writeFileSync(join(work, path), text);
      }
      chmodSync(join(work, 'run.sh'), 0o755);
      symlinkSync('knowledge/deploy.md', join(work, 'latest.md'));
      writeFileSync(join(work, 'knowledge/pipeline.png'), png);
      writeFileSync(join(work, 'archive.bin'), Buffer.from([0, 1, 2]));
      git(work, 'add', '-A');
      git(work, 'commit', '-q', '-m', 'Write down how the shop works');
      writeFileSync(join(work, 'knowledge/deploy.md'), deploy('then call Grace at home'));
      writeFileSync(join(work, 'knowledge/checklist.md'), '# Checklist\n\n- Tag\n- Push\n');
      git(work, 'commit', '-q', '-a', '-m', 'Say whom to call\n\nThe pager was sold.\n\nSatchel-Tool: bash\nSatchel-Client: claude-code');
      s.run('space', 'import', work);
      const browser = await launch(later);
      person = await open(browser, { baseURL: s.issuer, javaScriptEnabled });
      page = person.page;
      await page.goto(s.link());
      await page.getByRole('button', { name: /^sign in/i }).click();
      await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
      space = (await page.getByRole('link', { name: 'Files', exact: true }).getAttribute('href')).replace(/\/files\/$/, '');
    });

    after(async () => {
      await later.run();
      assert.deepEqual(person?.complaints ?? [], []);
    });

    test('a directory, and the page in it', async (t) => {
      t.diagnostic(`screenshots are in ${screenshots()}`);
      await page.goto(`${space}/files/`);
      await heading('Files');
      await page.getByText('What the team and its AIs know').waitFor();
      await look('root');
      await tree().getByRole('link', { name: 'knowledge', exact: true }).click();
      await heading('knowledge');
      await tree().getByRole('link', { name: 'deploy.md' }).click();
      await heading('deploy.md');
      assert.equal(await tree().getByRole('link', { name: 'deploy.md' }).getAttribute('aria-current'), 'page');
      await page.getByText('How a release gets out, and back.').waitFor();
      assert.ok(await shown(page.locator('.text img').first()), 'the picture is not shown');
      await look('page');
      await more('View the source');
      await page.locator('#L7').waitFor();
      await look('page-source');
      await page.getByRole('link', { name: 'Preview' }).click();
      await page.getByRole('link', { name: 'Grace', exact: true }).click();
      await heading('grace.md');
      await page.getByText('On call this week').waitFor();
    });

    test('code, links, pictures and bytes', async () => {
      await page.goto(`${space}/files/src/main.go#L6`);
      await page.locator('#L6').waitFor();
      await look('code');
      await page.goto(`${space}/files/latest.md`);
      await page.getByText('symbolic link').waitFor();
      await look('link');
      await page.locator('main').getByRole('link', { name: 'knowledge/deploy.md' }).click();
      await heading('deploy.md');
      await page.goto(`${space}/files/knowledge/pipeline.png`);
      assert.ok(await shown(page.locator('.picture img')));
      await look('picture');
      await page.goto(`${space}/files/archive.bin`);
      await page.getByText('not text').waitFor();
      await look('bytes');
      const raw = await page.request.get(`${space}/raw/archive.bin`);
      assert.match(raw.headers()['content-disposition'], /attachment/);
    });

    test('history, a change, and the version before', async () => {
      await page.goto(`${space}/files/knowledge/deploy.md`);
      await page.getByRole('link', { name: 'History', exact: true }).click();
      await heading('History of deploy.md');
      await look('history');
      await page.getByRole('link', { name: 'Say whom to call' }).first().click();
      await heading('Say whom to call');
      await page.getByText('The pager was sold.').waitFor();
      assert.ok(await page.locator('td.minus del').count() > 0 && await page.locator('td.plus ins').count() > 0, 'what changed is not shown');
      await look('commit');
      await page.getByLabel('More for knowledge/deploy.md').click();
      await page.getByRole('button', { name: 'Restore the file before' }).filter({ visible: true }).click();
      await heading('deploy.md');
      await page.getByText('then call the pager').waitFor();
      await page.getByRole('link', { name: 'History', exact: true }).click();
      await page.getByRole('link', { name: /^View this version/ }).nth(1).click();
      await page.getByText('You are viewing an earlier version').waitFor();
      await page.getByText('then call Grace at home').waitFor();
      await look('then');
      await page.getByRole('link', { name: 'Compare with the current version' }).click();
      await heading('What changed in knowledge/deploy.md');
      await page.goBack();
      await page.getByRole('button', { name: 'Restore this version' }).click();
      await page.getByText('The version was restored').waitFor();
      await page.getByText('then call Grace at home').waitFor();
      await look('brought-back');
      await page.getByRole('link', { name: 'History', exact: true }).click();
      await page.getByRole('link', { name: 'Compare versions' }).click();
      await page.getByRole('radio', { name: /^From/ }).nth(2).check();
      await page.getByRole('radio', { name: /^To/ }).nth(1).check();
      await page.getByRole('button', { name: 'Compare', exact: true }).click();
      await heading('What changed in knowledge/deploy.md');
      await page.getByText('1 file changed').waitFor();
      await look('compare');
      await page.goto(`${space}/history/knowledge/deploy.md`);
      await page.getByRole('button', { name: /^Restore the version/ }).first().click();
      await page.getByText('then call the pager').waitFor();
    });

    test('one press restores yesterday’s version, and one takes that back', async () => {
      await page.goto(`${space}/files/knowledge/checklist.md`);
      await page.getByText('Tag').waitFor();
      await page.getByRole('link', { name: 'History', exact: true }).click();
      await page.getByRole('button', { name: /^Restore the version/ }).first().press('Enter');
      await page.getByText('Say it aloud').waitFor();
      await page.getByRole('status').getByText('The version was restored').waitFor();
      await look('restored');
      await page.getByRole('button', { name: 'Undo' }).press('Enter');
      await page.getByRole('status').getByText('The change was undone').waitFor();
      assert.equal(await page.getByText('Say it aloud').count(), 0);
    });

    test('the tree opens in place, with the keyboard alone', { skip: !javaScriptEnabled }, async () => {
      await page.goto(`${space}/files/`);
      await tree().getByRole('link', { name: 'people', exact: true }).focus();
      await page.keyboard.press('ArrowRight');
      await tree().getByRole('link', { name: 'grace.md' }).waitFor();
      await look('tree-open');
      await tree().getByRole('link', { name: 'people', exact: true }).focus(); // a narrow window hid the tree
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('Enter');
      await heading('grace.md');
    });

    test('a phone has the tree and the contents behind buttons', async () => {
      const size = page.viewportSize();
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${space}/files/knowledge/deploy.md`);
      assert.equal(await tree().isVisible(), false);
      await page.getByRole('button', { name: 'Tree' }).press('Enter');
      await tree().getByRole('link', { name: 'checklist.md' }).click();
      await heading('checklist.md');
      await page.goto(`${space}/files/knowledge/deploy.md`);
      await page.getByRole('button', { name: 'On this page' }).click();
      await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'Rolling back' }).click();
      await page.waitForURL((u) => u.hash === '#rolling-back');
      await page.setViewportSize(size);
    });

    test('files are dropped on a directory', { skip: !javaScriptEnabled }, async () => {
      await page.goto(`${space}/files/people/`);
      const data = await page.evaluateHandle(() => {
        const d = new DataTransfer();
        d.items.add(new File(['# Ada\n'], 'ada.md', { type: 'text/markdown' }));
        d.items.add(new File(['# Bob\n'], 'bob.md', { type: 'text/markdown' }));
        return d;
      });
      await page.dispatchEvent('main', 'dragenter', { dataTransfer: data });
      await page.getByText('Drop the files to upload them').waitFor();
      await look('drop');
      await page.dispatchEvent('main', 'drop', { dataTransfer: data });
      await page.getByRole('status').getByText('The files were uploaded').waitFor();
      await tree().getByRole('link', { name: 'ada.md' }).waitFor();
      await page.getByRole('button', { name: 'Undo' }).click();
      await page.getByRole('status').getByText('The change was undone').waitFor();
      assert.equal(await page.getByRole('link', { name: 'ada.md' }).count(), 0);
    });

    test('a file is moved, deleted, and comes back', async () => {
      await page.goto(`${space}/files/people/grace.md`);
      await more('Rename or move');
      await page.getByLabel('New path').fill('team/grace.md');
      await page.getByRole('button', { name: 'Move' }).click();
      await page.getByRole('status').getByText('The file was moved').waitFor();
      await page.getByRole('button', { name: 'Undo' }).click();
      await page.getByRole('status').getByText('The change was undone').waitFor();
      await page.goto(`${space}/files/people/grace.md`);
      await page.locator('summary[aria-label="More for this file"]').click();
      await look('menu');
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('status').getByText('The file was deleted').waitFor();
      await page.getByRole('button', { name: 'Undo' }).click();
      await page.getByRole('status').getByText('The change was undone').waitFor();
      await page.goto(`${space}/files/people/grace.md`);
      await heading('grace.md');
    });

    test('nothing scrolls sideways on the narrowest of phones', async () => {
      const size = page.viewportSize();
      await page.setViewportSize({ width: 320, height: 640 });
      for (const path of ['files/', 'files/knowledge/', 'files/knowledge/deploy.md', 'history/', 'history/knowledge/deploy.md', 'upload']) {
        await page.goto(`${space}/${path}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${path} is wider than the page`);
      }
      await page.setViewportSize(size);
    });

    test('search leads to the heading', async () => {
      await page.goto(`${space}/search`);
      await look('search-empty');
      await until('the index has the page', async () => {
        await page.goto(`${space}/search?q=rolling+back`);
        return await page.locator('.found mark').count() > 0;
      });
      await look('search');
      await page.getByRole('link', { name: 'Deploying the shop' }).first().click();
      await heading('deploy.md');
      await page.goto(`${space}/search?q=zzzzqqq`);
      await page.getByText(/^No results/).waitFor();
      await look('search-nothing');
    });

    test('downloads', async () => {
      const zip = await page.request.get(`${space}/download/zip`);
      assert.equal((await zip.body()).subarray(0, 2).toString(), 'PK');
      const bundle = await page.request.get(`${space}/download/bundle`);
      const dir = tempDir('satchel-bundle-');
      later(() => remove(dir));
      writeFileSync(join(dir, 'x.bundle'), await bundle.body());
      git(dir, 'clone', '-q', 'x.bundle', 'all');
      assert.equal(readFileSync(join(dir, 'all/people/grace.md'), 'utf8'), files['people/grace.md']);
    });

    test('what is not there', async () => {
      const r = await page.goto(`${space}/files/nothing.md`);
      assert.equal(r.status(), 404);
      person.complaints.splice(0, person.complaints.length, ...person.complaints.filter((c) => !c.includes('404')));
    });
  });
}
