// What a server and all that it starts hold of the machine: processes, mounts,
// cgroups, descriptors, files. On cgroup 1 the server gets cgroups of its own,
// below which its sandboxes' are, so that nothing of it can be missed.
import { existsSync, mkdirSync, readFileSync, readdirSync, readlinkSync, rmdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const read = (file) => { try { return readFileSync(file, 'utf8'); } catch { return ''; } };
const list = (dir) => { try { return readdirSync(dir); } catch { return []; } };
const root = '/sys/fs/cgroup';

export class Place {
  constructor(data, temp) {
    this.data = data;
    this.temp = temp;
    this.own = [];   // cgroups that this made
    this.watch = []; // in which sandboxes' are made
    this.sessions = new Set();
    if (process.getuid() !== 0) return;
    const name = `satchel-chaos-${process.pid}`;
    if (existsSync(join(root, 'cgroup.controllers'))) {
      this.make(join(root, name));
      this.watch = [join(root, 'satchel')];
      return;
    }
    const paths = Object.fromEntries(read('/proc/self/cgroup').trim().split('\n').flatMap((l) => {
      const [, controllers, path] = l.split(':');
      return controllers.split(',').map((c) => [c, path]);
    }));
    for (const c of ['memory', 'pids', 'cpu']) if (paths[c]) this.make(join(root, c, paths[c], name));
    this.watch = this.own;
  }

  make(dir) {
    try { mkdirSync(dir); this.own.push(dir); } catch { /* this machine has none to give */ }
  }

  // wrap makes of a program one that starts in the place.
  wrap(program) {
    const join = this.own.map((d) => `echo $$ > ${d}/cgroup.procs && `).join('');
    return { program: 'sh', before: ['-c', `${join}exec "$0" "$@"`, program] };
  }

  // processes lists those that are there, by whatever they can be known: their
  // cgroup, their session, or the data directory in their command line.
  processes() {
    const found = new Set();
    const walk = (dir) => {
      for (const pid of read(join(dir, 'cgroup.procs')).split('\n').filter(Boolean)) found.add(Number(pid));
      for (const d of list(dir)) if (d.startsWith('satchel-')) walk(join(dir, d));
    };
    this.own.forEach(walk);
    for (const name of list('/proc')) {
      const pid = Number(name);
      if (!pid || found.has(pid)) continue;
      const stat = read(`/proc/${pid}/stat`);
      const [state, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (this.sessions.has(Number(session)) && state !== 'Z') found.add(pid);
      else if (pid !== process.pid && read(`/proc/${pid}/cmdline`).includes(this.data)) found.add(pid);
    }
    return [...found];
  }

  cgroups() {
    return this.watch.reduce((n, dir) => n + list(dir).filter((d) => /^satchel-[0-9a-f]{64}$/.test(d)).length, 0);
  }

  // mounts counts those that name the data directory, in every mount namespace
  // that the processes are in and in this one.
  mounts(processes) {
    const spaces = new Map();
    for (const pid of processes) {
      try { spaces.set(readlinkSync(`/proc/${pid}/ns/mnt`), pid); } catch { /* it has ended */ }
    }
    let own;
    try { own = readlinkSync('/proc/self/ns/mnt'); } catch { own = ''; }
    let inside = 0;
    // A new namespace begins with a copy of what the machine has at that moment.
    const ours = (pid) => read(`/proc/${pid}/mountinfo`).split('\n').filter((l) => l.includes(this.data) || l.includes(this.temp)).length;
    for (const [ns, pid] of spaces) if (ns !== own) inside += ours(pid);
    return { namespaces: [...spaces.keys()].filter((n) => n !== own).length, inside, outside: ours('self') };
  }

  remove() {
    for (const d of this.own) try { rmdirSync(d); } catch { /* something is left in it: that was told */ }
  }
}

// kindOf says what a descriptor is of, without numbers.
const kindOf = (target, data) => target.replace(data, 'DATA').replace(/\[\d+\]/, '').replace(/:$/, '').replace(/s_[a-z0-9]+\.(\d+\.)?/, 'SPACE.').replace(/\/[0-9a-f]{64}/, '/ID').replace(/pack-[0-9a-f]{40}/, 'pack').replace(/\/s_[a-z0-9]+/, '/SPACE');

// descriptors counts those of a process, by what they are of.
export function descriptors(pid, data) {
  const out = {};
  for (const fd of list(`/proc/${pid}/fd`)) {
    let target;
    try { target = readlinkSync(`/proc/${pid}/fd/${fd}`); } catch { continue; }
    const kind = kindOf(target, data);
    out[kind] = (out[kind] ?? 0) + 1;
  }
  return out;
}

// below lists what is below a directory.
function below(dir) {
  const out = [];
  for (const d of list(dir)) {
    out.push(join(dir, d));
    if (statSync(join(dir, d), { throwIfNoEntry: false })?.isDirectory()) out.push(...below(join(dir, d)));
  }
  return out;
}

// largest is the size of the largest file with a name, in bytes.
export function largest(dir, pattern) {
  return Math.max(0, ...list(dir).filter((d) => pattern.test(d)).map((d) => statSync(join(dir, d), { throwIfNoEntry: false })?.size ?? 0));
}

// count takes stock of a server; pid is 0 where it does not run.
export async function count(place, { pid, metrics }) {
  const processes = place.processes();
  const mounts = place.mounts(processes);
  const named = (name) => processes.filter((p) => read(`/proc/${p}/cmdline`).startsWith(name)).length;
  const runtime = processes.find((p) => /^satchel-sandbox\0runtime/.test(read(`/proc/${p}/cmdline`)));
  // The store keeps a large pack of a space open, which a space of ten minutes may have.
  const packs = (o) => total(Object.fromEntries(Object.entries(o).filter(([k]) => k.endsWith('/pack.pack'))));
  const databases = (o) => total(Object.fromEntries(Object.entries(o).filter(([k]) => /\.db(-wal|-shm)?$/.test(k))));
  const total = (o) => Object.values(o).reduce((a, b) => a + b, 0);
  const text = metrics ? await fetch(metrics).then((r) => r.text(), () => '') : '';
  const fds = pid ? descriptors(pid, place.data) : {};
  const run = below(join(place.data, 'run')).map((f) => f.slice(place.data.length + 1));
  const own = runtime ? descriptors(runtime, place.data) : {};
  return {
    'processes': processes.length,
    'sentries': named('runsc-sandbox'),
    'gofers': named('runsc-gofer'),
    'cgroups of sandboxes': place.cgroups(),
    'mount namespaces': mounts.namespaces,
    'mounts in them': mounts.inside,
    'mounts outside': mounts.outside,
    // Pools keep some connections open, as many as were last needed at once.
    'descriptors, server': total(fds) - databases(fds) - packs(fds),
    'descriptors, packs': packs(fds),
    'descriptors, databases': databases(fds),
    'descriptors, runtime': total(own),
    'goroutines': Number(/^go_goroutines (\d+)/m.exec(text)?.[1] ?? 0),
    'files in DATA/run': run.length,
    'files in DATA/held': below(join(place.data, 'held')).length,
    'quarantines': list(join(place.data, 'spaces/.quarantine')).length,
    'checkouts': list(join(place.data, 'spaces/.cache')).reduce((n, s) => n + list(join(place.data, 'spaces/.cache', s)).filter((d) => d.startsWith('checkout')).length, 0),
    'entries in spaces/': list(join(place.data, 'spaces')).length,
    'index databases': list(join(place.data, 'index')).filter((d) => d.endsWith('.db')).length,
    'temporary files': below(place.temp).length,
    'largest WAL, KiB': Math.ceil(Math.max(largest(place.data, /-wal$/), largest(join(place.data, 'index'), /-wal$/)) / 1024),
    'details': { server: fds, runtime: own, run },
  };
}
