// The stand-in for GitHub, as another process: people, organizations and
// repositories that a test makes, pages that a browser presses, webhooks, git.
// Everything that is asked of it is validated with GitHub's own description.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { remove, tempDir } from './server.mjs';
import { until } from './until.mjs';

const root = resolve(import.meta.dirname, '../..');

export class GitHub {
  // start builds and starts it, until the end; url is its origin, for
  // auth.github.url.
  static async start(later) {
    const scratch = tempDir('satchel-github-');
    later(() => remove(scratch));
    const program = join(scratch, 'githubtest');
    execFileSync('go', ['build', '-o', program, './e2e/githubtest'], { cwd: root, env: { ...process.env, CGO_ENABLED: '0' }, stdio: ['ignore', 'inherit', 'inherit'] });
    const gh = new GitHub();
    // It ends when its standard input does.
    gh.process = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
    const exited = once(gh.process, 'exit');
    later(async () => { gh.process.stdin.end(); await exited; });
    const lines = createInterface({ input: gh.process.stdout });
    [gh.url] = await Promise.race([once(lines, 'line'), exited.then(() => { throw new Error('githubtest ended'); })]);
    return gh;
  }

  // order has something happen in its world; what auth/github/apptest calls an
  // order. It returns what came of it.
  async order(name, args = {}) {
    const r = await fetch(`${this.url}/_control/${name}`, { method: 'POST', body: JSON.stringify(args) });
    const text = await r.text();
    assert.equal(r.status, 200, `${name}: ${text}`);
    return JSON.parse(text);
  }

  async violations() {
    return (await fetch(`${this.url}/_violations`)).json();
  }

  // file is the content of a file on a repository's main branch, or undefined.
  async file(repo, path) {
    return this.order('git', { Repo: repo, Args: ['cat-file', 'blob', `refs/heads/main:${path}`] }).catch(() => undefined);
  }

  // pushed waits until a file of the repository has the content.
  async pushed(repo, path, content) {
    let now;
    await until(() => `${repo}: ${path} is ${JSON.stringify(now)}`, async () => (now = await this.file(repo, path)) === content);
  }

  async installation(account) {
    return (await this.order('installations')).find((i) => i.account === account);
  }

  // signIn makes a browser somebody's at GitHub.
  async signIn(page, login) {
    await page.goto(`${this.url}/login`);
    await page.getByLabel('Username').fill(login);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL((u) => u.pathname !== '/login');
  }
}
