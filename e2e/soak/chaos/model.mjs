// What a user's space must hold, as far as the answers told.
//
// A file has the contents that it may have: one where an answer acknowledged
// it, several where a kill came between. Nothing here was read from the server
// but what its answers say.
import { createHash } from 'node:crypto';

export const blobId = (content) => createHash('sha1').update(`blob ${Buffer.byteLength(content)}\0`).update(content).digest('hex');

const tokenPattern = /mk[0-9]+x[0-9a-f]{16}/g;

// tokensIn lists the users' marks that a text holds.
export const tokensIn = (text) => new Set(text.match(tokenPattern) ?? []);

class File {
  constructor() {
    this.may = [null];       // contents; null: no such file
    this.tried = new Map();  // blob id -> content, of all that was ever begun
    this.torn = [];          // contents of which a killed command may have written the beginning alone
    this.fixed = false;      // what was begun on it may still be running: hands off
  }

  get certain() { return this.may.length === 1; }

  // beginningOf finds the torn content of which a blob is the beginning.
  beginningOf(id) {
    for (const whole of this.torn) {
      for (let n = 0; n < whole.length; n++) if (blobId(whole.slice(0, n)) === id) return whole.slice(0, n);
    }
    return undefined;
  }

  // contentOf is what a blob id stands for at this path, where it may be there.
  contentOf(id) { return this.tried.get(id) ?? this.beginningOf(id); }
}

const unique = (list) => [...new Set(list)];

export class User {
  constructor(name, token) {
    this.name = name;
    this.token = token;
    this.files = new Map();
    this.lines = new Map();  // of the file that two commands edit at once: key -> { may, tried }
    this.acknowledged = [];  // what answers called committed
    this.renames = [];       // { from, to, content } of renames that nobody answered
    this.jobs = new Map();   // job id -> change
    this.problems = [];      // what must not be
  }

  file(path) {
    if (!this.files.has(path)) this.files.set(path, new File());
    return this.files.get(path);
  }

  problem(what, detail = '') { this.problems.push(`${this.name}: ${what}${detail && `: ${detail}`}`); }

  // hears looks at any text that was answered to this user.
  hears(text) {
    for (const t of tokensIn(text)) if (t !== this.token) this.problem('an answer shows another user\'s mark', `${t} in ${text.slice(0, 400)}`);
  }

  // begin notes what an operation is about to change:
  // { path, to(content) => content, torn, once }.
  begin(op) {
    for (const c of op.changes) {
      const f = this.file(c.path);
      c.expected = unique(f.may.map(c.to));
      for (const content of c.expected) {
        if (content === null) continue;
        f.tried.set(blobId(content), content);
      }
    }
    for (const l of op.lines) {
      if (!this.lines.has(l.key)) this.lines.set(l.key, { may: [null], tried: new Set() });
      this.lines.get(l.key).tried.add(l.value);
    }
  }

  // answered notes what an answer told of an operation; meta is null where none
  // came.
  answered(op, meta, ok) {
    const told = new Map();
    for (const f of meta?.files ?? []) told.set(f.path, f.etag ?? null); // the newest commit comes last
    this.record(meta);
    for (const c of op.changes) this.settle(op, c, told, ok, meta);
    for (const l of op.lines) {
      const line = this.lines.get(l.key);
      const id = told.get(l.path);
      if (ok && id) {
        line.may = [l.value];
        this.acknowledged.push({ commits: meta.commits, path: l.path, id, line: `${l.key} ${l.value}` });
      } else {
        // Where the other command has the shared file open just then, the change
        // waits for that one's end.
        line.may = unique([...line.may, l.value]);
        line.fixed ||= meta?.end === 'job';
      }
    }
    if (op.rename && !ok) this.renames.push(...op.rename);
  }

  // record keeps what an answer called committed: { commits, path, id } (null:
  // deleted). Where it tells of several commits, git says which has the file.
  record(meta) {
    for (const f of meta?.files ?? []) {
      this.acknowledged.push({ commits: meta.commits, path: f.path, id: f.etag ?? null });
      const file = this.files.get(f.path);
      if (file?.once && f.etag && file.tried.has(f.etag)) file.may = [file.tried.get(f.etag)];
    }
  }

  settle(op, c, told, ok, meta) {
    const f = this.file(c.path);
    if (c.torn && !ok) f.torn.push(...c.expected);
    if (meta?.end === 'job') {
      f.fixed = true;
      f.may = unique([...f.may, ...c.expected]);
      return;
    }
    if (!told.has(c.path)) {
      if (!ok) {
        f.may = unique([...f.may, ...c.expected]);
        f.loose ||= c.torn;
        return;
      }
      const same = f.may.filter((content) => c.expected.includes(content));
      if (same.length > 0) f.may = same; // nothing to commit
      else {
        this.untold(op, c.path, meta);
        f.may = unique([...f.may, ...c.expected]);
      }
      return;
    }
    const id = told.get(c.path);
    const content = id === null ? null : f.contentOf(id);
    const possible = ok ? c.expected.includes(content) : content === null || content !== undefined;
    if (!possible) {
      this.problem('an answer tells of a content that was not written', `${op.kind} ${c.path} as ${id}, not ${c.expected.map((e) => e === null ? null : blobId(e))}`);
      return;
    }
    f.may = [content];
    f.loose = false;
  }

  // untold is a command that ended well, and whose answer names no commit for
  // what it changed.
  untold(op, path, meta) {
    if (meta.not_saved || meta.refused || (meta.files_total ?? 0) > (meta.files?.length ?? 0)) return;
    this.problem('an answer calls a command a success and does not tell of its change', `${op.kind} ${path}: ${JSON.stringify(meta)}\n${op.text}`);
  }

  // jobEnded notes a job's end that an answer told of, with the short ids of
  // its commits.
  jobEnded(id, commits) {
    const c = this.jobs.get(id);
    if (!c) return;
    this.jobs.delete(id);
    if (commits.length === 0) return; // another command's collection had it
    const content = c.expected[0];
    this.acknowledged.push({ commits, path: c.path, id: blobId(content), job: true });
    this.file(c.path).may = [content];
  }

  // paths lists the files that are there for certain.
  paths(filter = () => true) {
    return [...this.files].filter(([path, f]) => f.certain && !f.fixed && f.may[0] !== null && filter(path)).map(([path]) => path);
  }
}
