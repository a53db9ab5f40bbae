// A real Chromium, and how the pages that it shows are judged: by axe, light and
// dark, on a phone and on a desk, with the policies of the page in force.
import assert from 'node:assert/strict';
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';
import { limit } from './until.mjs';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// program finds Chromium: $E2E_CHROMIUM, or the first of its usual names on the
// path.
export function program() {
  const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
  const candidates = process.env.E2E_CHROMIUM ? [process.env.E2E_CHROMIUM]
    : names.flatMap((n) => process.env.PATH.split(delimiter).map((d) => join(d, n)));
  return candidates.find((f) => {
    try { accessSync(f, constants.X_OK); return true; } catch { return false; }
  });
}

// missing says why tests in Chromium are to be skipped here, or false. Continuous
// integration never skips them.
export const missing = process.env.CI || program() ? false : 'there is no Chromium: run scripts/install e2e, or set E2E_CHROMIUM';

export async function launch(later) {
  const executablePath = program();
  assert.ok(executablePath, 'there is no Chromium: run scripts/install e2e, or set E2E_CHROMIUM');
  const browser = await chromium.launch({
    executablePath,
    // It never leaves this machine.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1'],
  });
  later(() => browser.close());
  return browser;
}

// open returns a page in a fresh context, as another person's browser. complaints
// are what the browser said went wrong: errors of scripts, what the content
// security policy stopped, what did not load.
export async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(limit);
  const page = await context.newPage();
  const complaints = [];
  const watch = (p) => {
    p.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') complaints.push(`${p.url()}: ${m.text()}`); });
    p.on('pageerror', (e) => complaints.push(`${p.url()}: ${e.message}`));
  };
  watch(page);
  context.on('page', watch);
  return { context, page, complaints };
}

// signOut presses the button in the menu of the person.
export async function signOut(page) {
  await page.getByRole('button', { name: /^account of/i }).click();
  await page.getByRole('banner').getByRole('button', { name: /^sign out/i }).click();
}

// shown tells whether a picture is shown, once it has been asked for: one far
// down a page is not at first.
export function shown(picture) {
  return picture.evaluate((i) => new Promise((tell) => {
    const now = () => tell(i.naturalWidth > 0);
    if (i.complete) now();
    i.onload = now;
    i.onerror = now;
  }));
}

// authenticator gives the page a security key of its own, which verifies its
// user and keeps passkeys.
export async function authenticator(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
  });
  return { credentials: async () => (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials };
}

// Screenshots go to $E2E_SCREENSHOTS, or a directory that is left behind.
let directory;
export function screenshots() {
  directory ??= process.env.E2E_SCREENSHOTS ?? mkdtempSync(join(tmpdir(), 'satchel-screenshots-'));
  mkdirSync(directory, { recursive: true });
  return directory;
}

// A phone in daylight and a desk at night: both widths and both colour schemes.
const looks = [{ width: 360, colorScheme: 'light' }, { width: 1280, colorScheme: 'dark' }];

// judge looks at the page as it is, and fails where axe finds anything or where
// it scrolls sideways.
export async function judge(page, name) {
  const found = [];
  const size = page.viewportSize();
  for (const { width, colorScheme } of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await page.screenshot({ path: join(screenshots(), `${name}-${width}-${colorScheme}.png`), fullPage: true, animations: 'disabled' });
    const scrolls = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (scrolls > 0) found.push(`${name}, ${width} px: ${scrolls} px wider than the window`);
    // The bars of the frame cover what one can scroll out from under them, so axe sees all of the page at once.
    await page.setViewportSize({ width, height: Math.max(800, await page.evaluate(() => document.documentElement.scrollHeight)) });
    found.push(...(await axe(page)).map((v) => `${name}, ${width} px, ${colorScheme}: ${v}`));
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(size);
  assert.deepEqual(found, []);
}

// axe runs all of axe's rules but those that it calls experimental. It is
// evaluated by the debugger, so that the page's own policy stays in force.
async function axe(page) {
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  }));
  return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => `${n.html} (${n.failureSummary?.split('\n').at(-1)?.trim()})`).join('; ')}`);
}
