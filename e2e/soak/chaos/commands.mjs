// What users do: commands whose effect is known beforehand, and commands that
// break a limit. Each operation is
//
//   { kind, tool, args, end, changes, lines, rename, expect(result, text) }
//
// where end is what the command prints last, and only if all of it succeeded.
import { shared } from './check.mjs';

const quote = (s) => `'${s.replaceAll("'", "'\\''")}'`;

// Weights of what a worker does.
const everyday = {
  write: 16, torn: 7, overwrite: 9, append: 12, rename: 7, tree: 3, remove: 6, many: 2,
  addLine: 9, editLine: 8, cat: 12, read: 5, search: 3, job: 5, thief: 1,
};

// limits are what the server is given, small enough to be met.
export const limits = {
  SATCHEL_SANDBOX_MAX: '19', SATCHEL_SANDBOX_MEMORY: '128MiB', SATCHEL_SANDBOX_PROCESSES: '64', SATCHEL_SANDBOX_DISK: '24MiB',
  SATCHEL_SANDBOX_WALL_TIME: '10s', SATCHEL_SANDBOX_DETACH_AFTER: '6s',
  SATCHEL_SANDBOX_IDLE_STOP: '4s', SATCHEL_SERVER_RATE: '500',
};

// Breaches, with how many of each are in a deck.
export const breaches = {
  forkBomb: 2, memoryHog: 2, diskFiller: 2, inodeFiller: 1, outputFlood: 2, spin: 1, daemons: 2, killAll: 1, killInit: 1, bigFile: 1, tmpFiller: 1, openFiles: 1,
};

const ended = ['timed_out', 'job', 'lost', 'stopped', 'out_of_memory'];

// Worker makes the operations of one of a user's two clients. Files below
// chaos/<number>/ are its own; the shared file is both's.
export class Worker {
  // breaks is the order in which it breaks limits.
  constructor(user, number, random, breaks) {
    Object.assign(this, { user, number, random, breaks, dir: `chaos/${number}`, n: 0, log: 0, broken: 0 });
  }

  // operation begins the next one. others are the tokens of other users.
  operation(others) {
    this.id = `${this.user.name}-${this.number}-${++this.n}`;
    this.end = `end-${this.id}`;
    this.others = others;
    const kind = this.random.chance(0.06) ? this.breaks[this.broken++ % this.breaks.length] : this.random.weighted(everyday);
    return this.make(kind);
  }

  // probe is a command that must succeed soon, whatever came before.
  probe() {
    this.id = `${this.user.name}-${this.number}-${++this.n}`;
    this.end = `end-${this.id}`;
    return this.bash('probe', ':');
  }

  // tidy removes what a breach may have left, so that the disk is free again.
  tidy() {
    this.id = `${this.user.name}-${this.number}-${++this.n}`;
    this.end = `end-${this.id}`;
    return this.bash('tidy', `rm -rf chaos/fill/${this.number} /tmp/fill-*`);
  }

  make(kind) { return this[kind]?.() ?? this.write(); }

  bash(kind, command, rest = {}) {
    const { tool = 'bash', args = {}, ...more } = rest;
    return { kind, tool, args: { command: `${command} && echo ${this.end}`, ...args }, end: this.end, changes: [], lines: [], ...more };
  }

  content() {
    const line = `${this.user.token} ${this.id} `;
    return Array.from({ length: this.random.between(1, 30) }, (_, i) => `${line}${i} ${'.'.repeat(this.random.int(40))}\n`).join('');
  }

  // own picks one of the worker's files that is there for certain.
  own(filter = /\/f[^/]*$/) { return this.random.pick(this.user.paths((p) => p.startsWith(`${this.dir}/`) && filter.test(p))); }

  // whole writes a file in one step: it is never there by half.
  whole(path, content) {
    const part = path.replace(/[^/]*$/, `.part-${this.id}`);
    return `mkdir -p ${path.replace(/\/[^/]*$/, '')} && printf %s ${quote(content)} > ${part} && mv ${part} ${path}`;
  }

  newPath() { return `${this.dir}/d${this.random.int(4)}/f${this.n}.txt`; }

  write() {
    const content = this.content(), path = this.newPath();
    return this.bash('write', this.whole(path, content), { changes: [{ path, to: () => content }] });
  }

  // torn holds a file open for a while; it is not committed before it is closed.
  torn() {
    const content = this.content(), path = this.newPath(), half = content.length >> 1;
    return this.bash('torn', `mkdir -p ${path.replace(/\/[^/]*$/, '')} && { printf %s ${quote(content.slice(0, half))} && sleep 0.${this.random.int(5)} && printf %s ${quote(content.slice(half))}; } > ${path}`,
      { changes: [{ path, to: () => content, torn: true }] });
  }

  overwrite() {
    const path = this.own();
    if (!path) return undefined;
    const content = this.content();
    return this.random.chance(0.5)
      ? this.bash('overwrite', this.whole(path, content), { changes: [{ path, to: () => content }] })
      : this.bash('overwrite', `printf %s ${quote(content)} > ${path}`, { changes: [{ path, to: () => content, torn: true }] });
  }

  append() {
    let path = `${this.dir}/log-${this.log}.txt`;
    const f = this.user.file(path);
    if (f.fixed || f.may.length > 3) path = `${this.dir}/log-${++this.log}.txt`;
    const line = `${this.user.token} ${this.id}\n`;
    return this.bash('append', `mkdir -p ${this.dir} && printf %s ${quote(line)} >> ${path}`, { changes: [{ path, to: (old) => (old ?? '') + line }] });
  }

  rename() {
    const from = this.own();
    if (!from) return undefined;
    const to = `${this.dir}/r${this.n}/f${this.n}.txt`;
    const content = this.user.file(from).may[0];
    return this.bash('rename', `mkdir -p ${this.dir}/r${this.n} && mv ${from} ${to}`, this.moved([{ from, to, content }]));
  }

  moved(rename) {
    return { rename, changes: rename.flatMap(({ from, to, content }) => [{ path: from, to: () => null }, { path: to, to: () => content }]) };
  }

  // tree renames a directory with all that is in it, where all of that is certain.
  tree() {
    const from = `${this.dir}/d${this.random.int(4)}`, to = `${this.dir}/t${this.n}`;
    const inside = [...this.user.files].filter(([p, f]) => p.startsWith(`${from}/`) && !(f.certain && f.may[0] === null));
    if (inside.length === 0 || inside.some(([, f]) => !f.certain || f.fixed)) return undefined;
    return this.bash('tree', `mv ${from} ${to}`, this.moved(inside.map(([p, f]) => ({ from: p, to: to + p.slice(from.length), content: f.may[0] }))));
  }

  remove() {
    const path = this.own();
    return path && this.bash('remove', `rm ${path}`, { changes: [{ path, to: () => null }] });
  }

  many() {
    const paths = Array.from({ length: 60 }, (_, i) => `${this.dir}/m${this.n}/g${i}.txt`);
    const line = (i) => `${this.user.token} ${this.id} ${i}\n`;
    return this.bash('many', `mkdir -p ${this.dir}/m${this.n} && for i in $(seq 0 59); do echo "${this.user.token} ${this.id} $i" > ${this.dir}/m${this.n}/.part-$i && mv ${this.dir}/m${this.n}/.part-$i ${this.dir}/m${this.n}/g$i.txt || exit 1; done`,
      { changes: paths.map((path, i) => ({ path, to: () => line(i) })) });
  }

  // Both workers edit one file, one after the other, as flock has it.
  addLine() {
    const key = `line-${this.id}`, value = this.user.token;
    return this.bash('addLine', `mkdir -p chaos && flock -w 5 /tmp/shared sh -c ${quote(`echo "${key} ${value}" >> ${shared}`)}`, { lines: [{ path: shared, key, value }] });
  }

  editLine() {
    const mine = [...this.user.lines].filter(([k, l]) => k.startsWith(`line-${this.user.name}-${this.number}-`) && l.may.length === 1 && l.may[0] !== null && !l.fixed);
    if (mine.length === 0) return this.addLine();
    const [key] = this.random.pick(mine), value = `${this.user.token} ${this.id}`;
    return this.bash('editLine', `flock -w 5 /tmp/shared sed -i ${quote(`s/^${key} .*/${key} ${value}/`)} ${shared} && grep -qx ${quote(`${key} ${value}`)} ${shared}`, { lines: [{ path: shared, key, value }] });
  }

  // cat reads in the sandbox, without the right to write, what must be there.
  cat() {
    const path = this.own();
    if (!path) return undefined;
    const want = this.user.file(path).may[0];
    return this.bash('cat', `cat ${path} && ! { echo x > ${this.dir}/sneaky.txt; } 2>/dev/null`, {
      tool: 'bash_readonly',
      expect: (r, text, ok) => ok && !text.includes(want) && text.length < 5000 && `cat ${path} gives what was not acknowledged: ${text.slice(0, 300)}, not ${want.slice(0, 100)}`,
    });
  }

  read() {
    const path = this.own();
    if (!path) return undefined;
    const want = this.user.file(path).may[0].split('\n')[0];
    return { kind: 'read', tool: 'read', args: { paths: [path] }, changes: [], lines: [],
      expect: (r, text) => !r.isError && !text.includes(want) && `read ${path} gives what was not acknowledged: ${text.slice(0, 300)}` };
  }

  // search looks for another user's mark.
  search() {
    const query = this.random.chance(0.7) ? this.random.pick(this.others) : this.user.token;
    return { kind: 'search', tool: 'search', args: { query }, changes: [], lines: [], own: query === this.user.token,
      // The query itself is in the answer, and nothing else may be.
      hears: (text) => text.replaceAll(query, '') };
  }

  job() {
    const content = this.content(), path = `${this.dir}/j/j${this.n}.txt`;
    return this.bash('job', `sleep ${this.random.int(3)}.${this.random.int(10)}; ${this.whole(path, content)}`, { args: { background: true }, changes: [{ path, to: () => content, once: true }], background: true });
  }

  thief() { return { kind: 'thief', changes: [], lines: [] }; }

  // From here on: what breaks a limit. None may be called a success unless all
  // of it was done.
  breach(kind, command, rest) { return this.bash(kind, command, { breach: true, ...rest }); }

  forkBomb() { return this.breach('forkBomb', 'bomb() { bomb | bomb & }; bomb; sleep 1; false', { expect: mustFail }); }

  memoryHog() { return this.breach('memoryHog', `python3 -c "x = ['a' * 1048576 + str(i) for i in range(4096)]"`, { expect: mustFail }); }

  diskFiller() {
    const after = this.random.chance(0.5) ? `; rm -rf chaos/fill/${this.number}` : '';
    return this.breach('diskFiller', `mkdir -p chaos/fill/${this.number}; for i in 1 2 3 4 5; do dd if=/dev/zero of=chaos/fill/${this.number}/${this.n}-$i bs=1M count=9 2>&1 || break; done | grep 'No space left'${after}; false`, { expect: mustFail });
  }

  inodeFiller() {
    return this.breach('inodeFiller', `mkdir -p chaos/fill/${this.number}; for i in $(seq 12000); do : > chaos/fill/${this.number}/${this.n}-$i || break; done; rm -rf chaos/fill/${this.number}; false`, { expect: mustFail });
  }

  outputFlood() {
    return this.breach('outputFlood', 'seq 1 2000000', { expect: (r, text) => text.length > 33000 && `an answer of ${text.length} characters` });
  }

  spin() {
    return this.breach('spin', 'while :; do :; done', { expect: (r, text) => {
      const { end } = r._meta?.['satchel/result'] ?? {};
      return end && !ended.includes(end) && !/SIGKILL|SIGTERM|143|137/.test(text) && `a busy loop ended as ${end}: ${text.slice(0, 200)}`;
    } });
  }

  daemons() {
    this.daemon = `daemon-${this.id}`;
    return this.breach('daemons', `for i in 1 2 3; do (exec -a ${this.daemon} setsid sleep 1000 </dev/null >/dev/null 2>&1 &); done; :`, {
      then: () => this.bash('daemonsGone', `! pgrep -f '^${this.daemon.replace('daemon', '[d]aemon')}'`, {
        tool: 'bash_readonly', expect: (r, text, ok, meta) => meta?.exit_code === 1 && !/fork|Killed/.test(text) && `daemons outlived their command: ${text.slice(0, 200)}`,
      }),
    });
  }

  killAll() { return this.breach('killAll', 'kill -9 -1; sleep 1; false', { expect: mustFail }); }

  // Process 1 is not a command's to end.
  killInit() { return this.breach('killInit', '! kill -9 1 && ! kill -TERM 1 && echo x > /proc/1/fd/1; [ -d /proc/1 ]'); }

  bigFile() { return this.breach('bigFile', `mkdir -p chaos/fill/${this.number}; dd if=/dev/zero of=chaos/fill/${this.number}/${this.n}-big bs=1M count=14; rm -rf chaos/fill/${this.number}; false`, { expect: mustFail }); }

  tmpFiller() { return this.breach('tmpFiller', `! dd if=/dev/zero of=/tmp/fill-${this.n} bs=1M count=12; rm -f /tmp/fill-${this.n}`); }

  openFiles() { return this.breach('openFiles', '! python3 -c "x = [open(\'/dev/null\') for i in range(2000)]" 2>/dev/null'); }
}

const mustFail = (r, text, ok) => ok && `a command that cannot succeed is called a success: ${text.slice(0, 300)}`;
