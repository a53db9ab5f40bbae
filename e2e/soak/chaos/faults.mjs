// What goes wrong from outside: processes of the sandboxes, of their runtime and
// the server are killed or stopped for a while.
import { readFileSync } from 'node:fs';

const cmdline = (pid) => { try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8'); } catch { return ''; } };
const parent = (pid) => { try { const s = readFileSync(`/proc/${pid}/stat`, 'utf8'); return Number(s.slice(s.lastIndexOf(')') + 2).split(' ')[1]); } catch { return 0; } };

// faults, with how many of each are in a deck.
export const faults = {
  'kill sentry': 3, 'kill gofer': 2, 'kill agent': 3, 'kill process inside': 3, 'kill runtime': 2, 'kill server': 2,
  'drain server': 1, 'stop sentry 1 s': 2, 'stop gofer 1 s': 1, 'stop runtime 1 s': 1,
};

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

export class Faults {
  constructor(place, random, server) {
    Object.assign(this, { place, random, server, done: {} });
    this.deck = random.deck(faults);
  }

  find(test) { return this.place.processes().filter((pid) => test(cmdline(pid), pid)).sort((a, b) => a - b); }
  sentries() { return this.find((c) => c.startsWith('runsc-sandbox')); }
  gofers() { return this.find((c) => c.startsWith('runsc-gofer')); }
  runtime() { return this.find((c) => c.includes('runtime') && /satchel[ \0]runtime/.test(c)); }

  // insides are the host's processes that stand for those inside a sandbox, in
  // the order of their start: one that all begin as, the agent's, and commands'.
  insides(sentry) { return this.find((c, pid) => parent(pid) === sentry); }

  // strike does the next fault of the deck, and returns its name.
  async strike() {
    const kind = this.deck.next().value;
    if (await this.do(kind)) this.done[kind] = (this.done[kind] ?? 0) + 1;
    else this.done[`${kind}: nothing there`] = (this.done[`${kind}: nothing there`] ?? 0) + 1;
    return `${kind} ${this.pid ?? ''}`;
  }

  async do(kind) {
    const [verb, what] = kind.split(' ');
    if (what === 'server') {
      await this.server.restart(verb === 'kill' ? 'SIGKILL' : 'SIGTERM');
      return true;
    }
    const pid = this.target(what);
    this.pid = pid;
    if (!pid) return false;
    try {
      process.kill(pid, verb === 'kill' ? 'SIGKILL' : 'SIGSTOP');
    } catch { return false; }
    if (verb === 'stop') {
      await sleep(1000);
      try { process.kill(pid, 'SIGCONT'); } catch { /* it was killed meanwhile */ }
    }
    return true;
  }

  target(what) {
    switch (what) {
      case 'sentry': return this.random.pick(this.sentries());
      case 'gofer': return this.random.pick(this.gofers());
      case 'runtime': return this.runtime()[0];
      case 'agent': return this.insides(this.random.pick(this.sentries()))[1];
      case 'process': return this.random.pick(this.insides(this.random.pick(this.sentries())).slice(2));
    }
    return undefined;
  }
}
