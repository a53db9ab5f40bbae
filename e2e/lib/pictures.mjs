// Compares pictures of pages with those in e2e/pictures. Fonts differ a little between
// machines, so a picture is compared in squares of 4 pixels: the average colour of a square may
// differ by a tenth, and two of a hundred squares may differ by more.
// E2E_UPDATE=1 writes the pictures instead.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { screenshots } from './browser.mjs';

const known = join(import.meta.dirname, '../pictures');

// looksLike fails unless the picture of a page or a locator is like the known one of that name.
// Places that match the locators of covered are covered.
// browser opens the blank page on which they are compared.
export async function looksLike(browser, shown, name, covered = []) {
  const now = await shown.screenshot({ animations: 'disabled', scale: 'device', mask: covered, maskColor: '#808080' });
  writeFileSync(join(screenshots(), `${name}.png`), now);
  const file = join(known, `${name}.png`);
  if (process.env.E2E_UPDATE) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, now);
    return;
  }
  assert.ok(existsSync(file), `there is no picture ${name}: run the test with E2E_UPDATE=1, and look at what it writes`);
  const context = await browser.newContext();
  const page = await context.newPage();
  const different = await page.evaluate(async (pictures) => {
    const side = 4;
    const squares = await Promise.all(pictures.map(async (data) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const canvas = new OffscreenCanvas(Math.ceil(image.width / side), Math.ceil(image.height / side));
      const c = canvas.getContext('2d');
      c.imageSmoothingQuality = 'high';
      c.drawImage(image, 0, 0, canvas.width, canvas.height);
      return { width: canvas.width, height: canvas.height, data: c.getImageData(0, 0, canvas.width, canvas.height).data };
    }));
    const [a, b] = squares;
    if (a.width !== b.width || Math.abs(a.height - b.height) > 4) return 1;
    let n = 0;
    const end = Math.min(a.data.length, b.data.length);
    for (let i = 0; i < end; i += 4) if ([0, 1, 2].some((k) => Math.abs(a.data[i + k] - b.data[i + k]) > 25)) n++;
    return n / (end / 4);
  }, [readFileSync(file).toString('base64'), now.toString('base64')]);
  await context.close();
  assert.ok(different < 0.02, `${name}: ${(100 * different).toFixed(1)} % of the picture differ; see ${join(screenshots(), `${name}.png`)}`);
}
