// Starts the real binary on a data directory of its own and stops it.
import { spawn, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { until } from './until.mjs';

export const binary = resolve(process.env.E2E_BINARY ?? join(import.meta.dirname, '../../bin/satchel'));

export function tempDir(prefix) {
  return mkdtempSync(join(tmpdir(), prefix));
}

export function remove(dir) {
  rmSync(dir, { recursive: true, force: true });
}

// freePorts returns so many ports of this machine that nobody listened at. They
// are below those that the system gives to outgoing connections and to whoever
// asks for any (ip(7), ip_local_port_range), so that nobody takes one meanwhile.
export async function freePorts(n) {
  const servers = [];
  while (servers.length < n) {
    const s = createServer().listen(15_000 + Math.floor(Math.random() * 17_000), '127.0.0.1');
    await once(s, 'listening').then(() => servers.push(s), () => { /* somebody has it */ });
  }
  const ports = servers.map((s) => s.address().port);
  await Promise.all(servers.map((s) => { s.close(); return once(s, 'close'); }));
  return ports;
}

// satchel runs one administrative command and returns its JSON answer.
export function satchel(data, ...args) {
  return satchelAs({}, data, ...args);
}

// satchelAs runs it with other spawn options ({ uid, gid }) or another binary.
export function satchelAs({ program = binary, ...options }, data, ...args) {
  const out = execFileSync(program, [...args, '--data', data, '--json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
  return JSON.parse(out);
}

export class Server {
  // before are arguments of the program that come before satchel's own, where it
  // is one that starts satchel.
  constructor(data, { args = [], env = {}, program = binary, before = [], spawnOptions = {} } = {}) {
    this.data = data;
    this.args = args;
    this.env = env;
    this.program = program;
    this.before = before;
    this.spawnOptions = spawnOptions;
    this.output = '';
  }

  async start() {
    this.port ??= (await freePorts(1))[0];
    this.url = `http://127.0.0.1:${this.port}/mcp`;
    this.process = spawn(this.program, [...this.before, 'serve', '--data', this.data, '--listen', `127.0.0.1:${this.port}`, ...this.args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.env },
      ...this.spawnOptions,
    });
    this.exited = once(this.process, 'exit');
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream.setEncoding('utf8').on('data', (s) => { this.output += s; });
    }
    await this.ready();
    return this;
  }

  // ready waits until /readyz answers 200, and fails if the process ends first.
  async ready() {
    let gone = false;
    this.exited.then(() => { gone = true; });
    await until(() => `satchel serve is ready:\n${this.output}`, () => {
      if (gone) throw new Error(`satchel serve ended:\n${this.output}`);
      return fetch(this.url.replace(/mcp$/, 'readyz')).then((r) => r.ok, () => false);
    });
  }

  // firstKey reads the key of the first admin from the file that serve wrote,
  // since its output is no terminal here.
  firstKey() {
    return readFileSync(join(this.data, 'admin-key'), 'utf8').trim();
  }

  async kill(signal = 'SIGKILL') {
    this.process.kill(signal);
    const [code, sig] = await this.exited;
    return { code, signal: sig };
  }
}
