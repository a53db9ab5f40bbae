// The pictures of docs/images: a small space as a person has it after a week, in
// a real Chromium. `just images` makes them anew.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launch, open } from './lib/browser.mjs';
import { aWeek } from './lib/notes.mjs';
import { cleanup, serve } from './lib/oauth.mjs';

const out = resolve(import.meta.dirname, '../docs/images');

const later = cleanup();
try {
  const s = await serve(later, { env: { SATCHEL_SANDBOX_RUNTIME: 'gvisor' } });
  const browser = await launch(later);
  const { page } = await open(browser, { baseURL: s.issuer, viewport: { width: 1120, height: 700 }, colorScheme: 'light', locale: 'en-GB' });
  mkdirSync(out, { recursive: true });
  const shoot = async (name, path) => {
    if (path) await page.goto(path);
    await page.waitForLoadState('networkidle').catch(() => {});
    await page.screenshot({ path: join(out, `${name}.png`), animations: 'disabled' });
  };
  await page.goto(s.link());
  await page.getByRole('button', { name: /^sign in/i }).click();
  await page.waitForURL((u) => !u.pathname.startsWith('/signin'));
  await shoot('home', '/');

  const id = await aWeek(s);
  await shoot('file', `/spaces/${id}/files/knowledge/garden/watering.md`);
  await shoot('activity', `/spaces/${id}/activity`);
  await shoot('memory', `/spaces/${id}/memory`);
  await shoot('search', `/spaces/${id}/search?q=when+is+the+boiler+serviced`);
  await shoot('connect', '/connect/claude-code');
} finally {
  await later.run();
}
