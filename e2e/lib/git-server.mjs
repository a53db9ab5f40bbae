// A git server over http on loopback: real `git http-backend` on bare
// repositories, behind a password.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { environment, git } from './git.mjs';
import { tempDir, remove } from './server.mjs';

export class GitServer {
  constructor(password) {
    this.password = password;
    this.root = tempDir('satchel-git-');
    this.answer = null; // a status that every request gets, such as 503
    this.running = new Set();
  }

  async start() {
    this.server = createServer((req, res) => this.serve(req, res)).listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.base = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  create(name) {
    const dir = this.dir(name);
    mkdirSync(dir);
    git(dir, 'init', '-q', '--bare', '-b', 'main');
    git(dir, 'config', 'http.receivepack', 'true');
    return `${this.base}/${name}.git`;
  }

  dir(name) { return join(this.root, `${name}.git`); }

  // clone gives a work tree like a person's.
  clone(name) {
    const dir = join(this.root, `${name}-clone-${Math.random().toString(36).slice(2)}`);
    git(this.root, 'clone', '-q', this.dir(name), dir);
    return dir;
  }

  // refuse makes a repository refuse pushes while a shell condition over the
  // new commit ($new) holds, with a text; '' lets them pass again.
  refuse(name, condition, text) {
    const hook = join(this.dir(name), 'hooks', 'pre-receive');
    if (!condition) { rmSync(hook, { force: true }); return; }
    writeFileSync(hook, `#!/bin/sh\nwhile read old new ref; do\nif ${condition}; then\ncat >&2 <<'END'\n${text}\nEND\nexit 1\nfi\ndone\n`);
    chmodSync(hook, 0o755);
  }

  serve(req, res) {
    const want = 'Basic ' + Buffer.from(`x-access-token:${this.password}`).toString('base64');
    if (this.answer) { res.writeHead(this.answer).end(); return; }
    if (req.headers.authorization !== want) {
      res.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    const url = new URL(req.url, this.base);
    const cgi = spawn('git', ['http-backend'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        ...environment, GIT_PROJECT_ROOT: this.root, GIT_HTTP_EXPORT_ALL: '1', REMOTE_USER: 'bob', REQUEST_METHOD: req.method,
        PATH_INFO: url.pathname, QUERY_STRING: url.search.slice(1), CONTENT_TYPE: req.headers['content-type'] ?? '',
        ...(req.headers['content-length'] ? { CONTENT_LENGTH: req.headers['content-length'] } : {}),
        ...(req.headers['content-encoding'] ? { HTTP_CONTENT_ENCODING: req.headers['content-encoding'] } : {}),
        ...(req.headers['git-protocol'] ? { GIT_PROTOCOL: req.headers['git-protocol'] } : {}),
      },
    });
    this.running.add(cgi);
    cgi.on('close', () => this.running.delete(cgi));
    cgi.stdin.on('error', () => {});
    req.pipe(cgi.stdin);
    let head = Buffer.alloc(0);
    const onData = (chunk) => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      cgi.stdout.off('data', onData);
      let status = 200;
      for (const line of head.subarray(0, end).toString().split('\r\n')) {
        const [, name, value] = /^([^:]+): *(.*)$/.exec(line);
        if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10);
        else res.setHeader(name, value);
      }
      res.writeHead(status);
      res.write(head.subarray(end + 4));
      cgi.stdout.pipe(res);
    };
    cgi.stdout.on('data', onData);
    cgi.stdout.on('end', () => { if (!res.headersSent) res.writeHead(500); if (!res.writableEnded) res.end(); });
  }

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await Promise.all([...this.running].map((p) => once(p, 'close')));
    remove(this.root);
  }
}
