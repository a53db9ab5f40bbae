// Chaos: users with two commands at a time each, while sandboxes, agents, the
// runtime and the server are killed and stopped, and commands break their
// limits. No change that an answer acknowledged may be lost, nobody may see
// another's, and the machine must have afterwards what it had before.
//
//   E2E_CHAOS_SECONDS  how long (default 60)
//   E2E_CHAOS_SEED     decides users, commands and faults (default 1)
//   E2E_CHAOS_USERS    default 20
//   E2E_CHAOS_TRACE    1: keep what happened also where all went well
//   E2E_CHAOS_HARM     drop, flip or leak: tampers with what was read of the
//                      repositories, to show that the test notices
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Worker, breaches, limits } from './chaos/commands.mjs';
import { check, conflicts, readRepository } from './chaos/check.mjs';
import { Place, count } from './chaos/counts.mjs';
import { Faults } from './chaos/faults.mjs';
import { User } from './chaos/model.mjs';
import { Random } from './chaos/random.mjs';
import { Session, isGeneric, shape } from './chaos/session.mjs';
import { tamper } from './chaos/harm.mjs';
import { Server, binary, freePorts, remove, satchel, tempDir } from '../lib/server.mjs';

const seconds = Number(process.env.E2E_CHAOS_SECONDS ?? 60);
const seed = process.env.E2E_CHAOS_SEED ?? '1';
const people = Number(process.env.E2E_CHAOS_USERS ?? 20);
const maxTries = 8; // of a command after a fault, until it works again

const data = tempDir('satchel-chaos-');
const temp = tempDir('satchel-chaos-tmp-');
const place = new Place(data, temp);
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// Host is the server through its restarts.
class Host {
  constructor() {
    this.server = new Server(data, { ...place.wrap(binary), env: { ...limits, TMPDIR: temp }, spawnOptions: { detached: true } });
    this.epoch = 0;
    this.down = true;
    this.waiting = [];
    this.exits = [];
    this.restarts = [];
  }

  get url() { return this.server.url; }
  get pid() { return this.server.process.pid; }
  get metrics() { return `http://127.0.0.1:${this.metricsPort}/metrics`; }

  async start() {
    const began = Date.now();
    this.metricsPort ??= (await freePorts(1))[0];
    this.server.args = ['--metrics', `127.0.0.1:${this.metricsPort}`];
    await this.server.start();
    place.sessions.add(this.pid);
    this.down = false;
    return Date.now() - began;
  }

  // up returns when the server answers.
  async up() { while (this.down) await sleep(20); }

  // gone returns when the server of an epoch went away.
  gone(epoch) {
    if (this.epoch !== epoch) return Promise.resolve();
    return new Promise((r) => this.waiting.push(r));
  }

  async restart(signal) {
    this.down = true;
    if (signal === 'SIGKILL') this.leave();
    const began = Date.now();
    const end = await this.server.kill(signal);
    const ended = Date.now() - began;
    if (signal !== 'SIGKILL') this.leave(); // its answers go out while it drains
    if (signal !== 'SIGKILL' && end.code !== 0) this.exits.push(`the server ended with ${JSON.stringify(end)} after ${signal}`);
    this.restarts.push({ signal, ended, ready: await this.start() });
  }

  leave() {
    this.epoch++;
    for (const r of this.waiting.splice(0)) r();
  }
}

const host = new Host();
const text = (r) => r.content.map((c) => c.text ?? '').join('\n');
const meta = (r) => r._meta?.['satchel/result'];
const stats = { commands: 0, acknowledged: 0, unknown: 0, kinds: {}, errors: {}, breaches: {}, ends: {}, tries: {}, gone: 0, problems: [] };
// trace keeps what happened, for those who look for why something went wrong.
const events = [];
const trace = (user, ...what) => events.push({ at: new Date().toISOString(), who: user?.name, what });
const add = (o, k) => { o[k] = (o[k] ?? 0) + 1; };
let users = [];
let base;

before(async () => {
  await host.start();
  // Everyone breaks the limits in the same order, and each begins elsewhere in it.
  const breaks = new Random(seed, 'breaches').shuffled(Object.entries(breaches).flatMap(([kind, n]) => Array(n).fill(kind)));
  const from = (k) => [...breaks.slice(k % breaks.length), ...breaks.slice(0, k % breaks.length)];
  for (let i = 0; i < people; i++) {
    const name = `u${i}`;
    satchel(data, 'user', 'add', name);
    const random = new Random(seed, name, 'token');
    const hex = Array.from({ length: 16 }, () => random.int(16).toString(16)).join('');
    const user = new User(name, `mk${i}x${hex}`);
    user.key = satchel(data, 'token', 'create', '--user', name).token;
    user.workers = [0, 1].map((n) => ({ worker: new Worker(user, n, new Random(seed, name, n), from(2 * i + n)), session: new Session(host, user.key, n === 1), think: new Random(seed, name, n, 'think') }));
    users.push(user);
  }
});

after(() => {
  for (const pid of place.processes()) try { process.kill(pid, 'SIGKILL'); } catch { /* it has ended */ }
  remove(data);
  remove(temp);
  place.remove();
});

// run does one operation, and has the user's model note what came of it.
async function run(user, session, op) {
  user.begin(op);
  stats.commands++;
  add(stats.kinds, op.kind);
  trace(user, '>', op.end ?? op.kind, op.args);
  const { result, gone, hung, error, typed } = await session.call(op.tool, op.args);
  trace(user, '<', op.end ?? op.kind, result ? { text: text(result).slice(0, 1500), meta: meta(result) } : { gone, hung, error });
  if (!result) {
    user.answered(op, null, false);
    if (op.gone = gone) stats.gone++;
    else {
      add(stats.errors, shape(error ?? 'no answer'));
      if (hung) user.problem('a call was never answered', op.args.command ?? op.kind);
      else if (!typed) user.problem('an error that is no plain answer', `${op.kind}: ${error}`);
      user.hears(error ?? '');
    }
    return false;
  }
  const said = text(result), m = op.tool.startsWith('bash') ? meta(result) : undefined;
  op.text = said;
  user.hears(op.hears ? op.hears(said) : said);
  if (op.tool === 'search') user.hears((op.hears ?? String)(JSON.stringify(meta(result) ?? {})));
  if (m?.end) add(stats.ends, m.end);
  if (result.isError) add(stats.errors, shape(said));
  if (isGeneric(said)) user.problem('an error that says nothing', `${op.kind}: ${said.slice(0, 300)}`);
  for (const [, id, ids] of said.matchAll(/Job (\S+) \(.*\) ended with exit code 0 after [0-9.hmsµn]+?(?:; committed as ([0-9a-f, ]+))?\.(?=[\s\]])/g)) {
    add(stats.kinds, ids ? 'job told as committed' : 'job told as ended');
    user.jobEnded(id, ids ? ids.split(', ') : []);
  }
  const claimed = m?.end === 'exited' && m.exit_code === 0;
  const done = op.end === undefined || said.includes(`${op.end}\n`); // after what may end without a line break
  if (claimed && !done) user.problem('exit code 0 for a command that did not come to its end', `${op.kind}: ${said.slice(-400)}`);
  if (['lost', 'out_of_memory'].includes(m?.end) && m.commits) user.problem('an answer says that changes are lost, and which commit has them', said.slice(0, 400));
  const ok = op.end === undefined ? !result.isError : claimed && done;
  if (op.background && m?.job) user.jobs.set(m.job.id, op.changes[0]);
  user.answered(op, m ?? null, ok && !m?.not_saved);
  if (op.changes.length + op.lines.length > 0) add(stats, ok && !m?.not_saved ? 'acknowledged' : 'unknown');
  const wrong = op.expect?.(result, said, ok, m);
  if (wrong) user.problem(op.kind, wrong);
  op.m = m;
  return ok;
}

// recover repeats a command that cannot fail until it works.
async function recover(user, { worker, session }) {
  for (let tries = 1; ; tries++) {
    const op = worker.probe();
    if (await run(user, session, op)) { add(stats.tries, tries); return; }
    if (op.gone) tries--; // there was no server to ask
    if (tries >= maxTries) { user.problem('no command works any more', `after ${tries} tries`); return; }
    await sleep(100);
  }
}

// steal uses one's key with another's session.
async function steal(user) {
  const other = users[(users.indexOf(user) + 1) % users.length];
  const id = other.workers[0].session.id;
  if (!id || host.down) return;
  const { epoch } = host;
  const r = await fetch(host.url, {
    method: 'POST',
    headers: { Authorization: `Bearer ${user.key}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2025-11-25', 'Mcp-Session-Id': id },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'bash_readonly', arguments: { command: 'cat chaos/shared.txt' } } }),
  }).then(async (r) => ({ status: r.status, body: await r.text() }), () => null);
  if (!r || epoch !== host.epoch) return;
  user.hears(r.body);
  if (r.status < 400) user.problem('another user\'s session was accepted', `${r.status} ${r.body.slice(0, 200)}`);
  add(stats.kinds, 'theft of a session refused');
}

async function work(user, one, end) {
  const { worker, session, think } = one;
  const others = users.filter((u) => u !== user).map((u) => u.token);
  await sleep(think.int(2000));
  while (Date.now() < end) {
    const op = worker.operation(others);
    if (op.kind === 'thief') { await steal(user); continue; }
    const ok = await run(user, session, op);
    if (op.breach) add(stats.breaches, op.kind);
    if (op.then && ok) await run(user, session, op.then());
    if (op.breach || !ok) await recover(user, one);
    if (op.breach || /No space left/.test(op.text ?? '')) await run(user, session, worker.tidy());
    await sleep(think.between(100, 1000));
  }
}

// settle runs one command for each user through each client, closes the
// clients, and waits until the sandboxes have stopped for want of work.
async function settle() {
  for (const u of users) for (const one of u.workers) await recover(u, one);
  for (const u of users) for (const { session } of u.workers) await session.close();
  for (const deadline = Date.now() + 90_000; place.cgroups() + (await count(place, host)).sentries > 0;) {
    assert.ok(Date.now() < deadline, `idle sandboxes do not stop:\n${host.server.output.slice(-3000)}`);
    await sleep(500);
  }
}

// settled counts once what is told to end has ended: the counts are those of
// the start, or the time is up.
async function settled(start) {
  for (const deadline = Date.now() + 30_000; ; await sleep(500)) {
    const now = await count(place, host);
    if (Date.now() > deadline || start && Object.keys(bounds).every((k) => now[k] <= start[k] + bounds[k])) return now;
    if (!start) { await sleep(3000); return count(place, host); }
  }
}

// By how much each count may be above that of the start.
const bounds = {
  'processes': 0, 'sentries': 0, 'gofers': 0, 'cgroups of sandboxes': 0, 'mount namespaces': 0, 'mounts in them': 0, 'mounts outside': 0,
  'descriptors, server': 0, 'descriptors, packs': people, 'descriptors, databases': 32, 'descriptors, runtime': 0, 'goroutines': 8, 'files in DATA/run': 0, 'files in DATA/held': 0, 'quarantines': 0,
  'checkouts': 0, 'entries in spaces/': 0, 'index databases': 0, 'temporary files': 0, 'largest WAL, KiB': 8192,
};

function table(t, columns) {
  const [first] = Object.values(columns);
  t.diagnostic(['count'.padEnd(24), ...Object.keys(columns).map((c) => c.padStart(10))].join(''));
  for (const k of Object.keys(first)) if (k !== 'details') t.diagnostic([k.padEnd(24), ...Object.values(columns).map((c) => String(c[k]).padStart(10))].join(''));
}

test(`${people} users, two commands at a time, ${seconds} s of faults, seed ${seed}`, { timeout: (seconds + 420) * 1000 }, async (t) => {
  await settle();
  const start = await settled();
  const spaces = satchel(data, 'space', 'list');
  const repository = (u) => spaces.find((s) => s.owner === u.name).repository;
  base = new Set((await readRepository(repository(users[0]))).tree.keys());

  const random = new Random(seed, 'faults');
  const faults = new Faults(place, random, host);
  const began = Date.now();
  const end = began + seconds * 1000;
  const working = Promise.all(users.flatMap((u) => u.workers.map((w) => work(u, w, end))));
  let failure;
  working.catch((e) => { failure = e; });
  for (;;) {
    await sleep(random.between(2000, 4000));
    if (failure || Date.now() > end - 2000) break;
    trace(null, await faults.strike());
  }
  await working;
  const took = ((Date.now() - began) / 1000).toFixed(0);
  await settle();
  const idle = await settled(start);
  const { code } = await host.server.kill('SIGTERM');
  const stopped = await count(place, { pid: 0 });

  t.diagnostic(`seed ${seed}: ${stats.commands} commands in ${took} s; ${stats.acknowledged} acknowledged changes, ${stats.unknown} answered with another end, ${stats.gone} calls whose server went away`);
  for (const [what, o] of Object.entries({ commands: stats.kinds, faults: faults.done, breaches: stats.breaches, ends: stats.ends, 'tries until a command worked': stats.tries })) {
    t.diagnostic(`${what}: ${Object.entries(o).map(([k, n]) => `${k} ${n}`).join(', ')}`);
  }
  for (const s of ['SIGKILL', 'SIGTERM']) {
    const list = host.restarts.filter((r) => r.signal === s);
    if (list.length) t.diagnostic(`${s}: gone within ${Math.max(...list.map((r) => r.ended))} ms, ready again within ${Math.max(...list.map((r) => r.ready))} ms`);
  }
  for (const [e, n] of Object.entries(stats.errors).sort((a, b) => b[1] - a[1])) t.diagnostic(`error ${n} x ${e}`);
  table(t, { start, idle, stopped });

  const found = [...host.exits, ...users.flatMap((u) => u.problems)];
  let kept = 0, changes = 0;
  for (const u of users) {
    const repo = await readRepository(repository(u));
    if (process.env.E2E_CHAOS_HARM && u === users[0]) tamper(process.env.E2E_CHAOS_HARM, u, repo, users[1].token);
    found.push(...check(u, repo, base));
    kept += conflicts(repo).length;
    changes += u.acknowledged.length;
  }
  t.diagnostic(`${changes} acknowledged files in commits checked; ${kept} conflict copies`);
  for (const k of Object.keys(bounds)) {
    if (idle[k] > start[k] + bounds[k]) found.push(`${k}: ${start[k]} at the start, ${idle[k]} afterwards`);
  }
  for (const k of ['processes', 'cgroups of sandboxes', 'mount namespaces', 'mounts outside', 'temporary files', 'quarantines']) {
    if (stopped[k] > 0) found.push(`${k}: ${stopped[k]} are left after the server has stopped`);
  }
  if (Object.keys(bounds).some((k) => idle[k] > start[k] + bounds[k])) {
    t.diagnostic(`in detail at the start: ${JSON.stringify(start.details)}`);
    t.diagnostic(`in detail afterwards: ${JSON.stringify(idle.details)}`);
  }
  if (code !== 0) found.push(`the server ended with ${code}`);
  if (/panic:|fatal error:|DATA RACE/.test(host.server.output)) found.push(`the server's log: ${/.*(panic:|fatal error:)[^]{0,2000}/.exec(host.server.output)?.[0]}`);
  if (found.length > 0 || process.env.E2E_CHAOS_TRACE) {
    const dir = tempDir('satchel-chaos-trace-');
    writeFileSync(join(dir, 'events.jsonl'), events.map((e) => JSON.stringify(e)).join('\n'));
    writeFileSync(join(dir, 'server.log'), host.server.output);
    for (const u of users) if (u.problems.length > 0 || found.some((f) => f.startsWith(`${u.name}:`))) cpSync(repository(u), join(dir, `${u.name}.git`), { recursive: true });
    t.diagnostic(`everything that happened is in ${dir}`);
  }
  for (const p of found.slice(0, 60)) t.diagnostic(`PROBLEM ${p}`);
  assert.equal(found.length, 0, `${found.length} problems, the first: ${found[0]}\nseed ${seed}; the server's last words:\n${host.server.output.slice(-2000)}`);
  assert.ok(stats.acknowledged > seconds, 'there was work');
});

test('the check notices each harm', async () => {
  const { selfTest } = await import('./chaos/harm.mjs');
  selfTest();
});
