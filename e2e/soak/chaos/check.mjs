// Compares a user's repository with what answers told of it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { environment, git } from '../../lib/git.mjs';
import { tokensIn } from './model.mjs';

// readRepository reads a bare repository with git alone:
// { tree: path -> blob id, commits: id -> [{ path, id }], blobs: id -> content }.
export async function readRepository(dir) {
  const read = (...args) => git(dir, '-c', 'core.quotePath=false', ...args);
  read('fsck', '--full', '--strict');
  const tree = new Map();
  for (const l of read('ls-tree', '-r', '--full-tree', 'HEAD').split('\n').filter(Boolean)) {
    const [head, path] = l.split('\t');
    tree.set(path, head.split(' ')[2]);
  }
  const commits = new Map();
  let files;
  for (const l of read('log', '--raw', '--root', '--no-renames', '--no-abbrev', '--format=commit %H', 'HEAD').split('\n')) {
    if (l.startsWith('commit ')) commits.set(l.slice(7), files = []);
    else if (l.startsWith(':')) {
      const [head, path] = l.split('\t');
      const [, , , id, status] = head.split(' ');
      files.push({ path, id: status === 'D' ? null : id });
    }
  }
  return { tree, commits, blobs: await readBlobs(dir) };
}

// readBlobs reads every blob that is no larger than what the test writes.
async function readBlobs(dir) {
  const list = git(dir, 'cat-file', '--batch-all-objects', '--batch-check').split('\n')
    .map((l) => l.split(' ')).filter(([, type, size]) => type === 'blob' && Number(size) <= 1 << 20).map(([id]) => id);
  const child = spawn('git', ['cat-file', '--batch'], { cwd: dir, env: environment, stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks = [];
  child.stdout.on('data', (c) => chunks.push(c));
  child.stdin.end(list.join('\n') + '\n');
  await once(child, 'close');
  const all = Buffer.concat(chunks);
  const blobs = new Map();
  for (let at = 0; at < all.length;) {
    const line = all.indexOf(10, at);
    const [id, , size] = all.toString('utf8', at, line).split(' ');
    blobs.set(id, all.toString('utf8', line + 1, line + 1 + Number(size)));
    at = line + 1 + Number(size) + 1;
  }
  return blobs;
}

// What commands leave behind that are killed or that fill the disk.
const leftover = /^chaos\/(fill\/|.*\/?\.part-|.*\/?sed[A-Za-z0-9]{6}$)/;
const isConflict = (path) => /\.conflict-[0-9a-f]+/.test(path);

// check lists everything in which a repository is not what the model says.
// base has the paths that every space begins with.
export function check(user, repo, base) {
  const found = [];
  const say = (what, ...detail) => found.push(`${user.name}: ${what}: ${detail.join(' ')}`);
  const all = [...repo.commits.keys()];
  const full = (id) => id.length === 40 ? id : all.find((c) => c.startsWith(id));

  for (const a of user.acknowledged) {
    const commits = a.commits.map(full);
    if (commits.some((c) => !c || !repo.commits.has(c))) say('an acknowledged commit is not in the history', JSON.stringify(a));
    // A job's file may be in the commit of a command that ended beside it.
    else if (!(a.job ? all : commits).some((c) => repo.commits.get(c).some((f) => f.path === a.path && f.id === a.id))) say('an acknowledged file is not in its commit', JSON.stringify(a));
    if (a.line && !repo.blobs.get(a.id)?.split('\n').includes(a.line)) say('an acknowledged line is not in its commit', JSON.stringify(a));
  }

  for (const [path, f] of user.files) {
    const id = repo.tree.get(path) ?? null;
    if (f.may.some((content) => content === null ? id === null : f.tried.get(id) === content || repo.blobs.get(id) === content)) continue;
    if (f.loose && f.beginningOf(id) !== undefined) continue;
    if (f.certain) say('an acknowledged change is lost', path, `is ${id === null ? 'not there' : id}, and should be`, f.may[0] === null ? 'deleted' : JSON.stringify(f.may[0].slice(0, 80)));
    else say('a file is in none of the states that it may be in', path, String(id));
  }

  for (const { from, to, content } of user.renames) {
    const [a, b] = [from, to].map((p) => user.files.get(p));
    if (a.may.length > 2 || b.may.length > 2 || b.loose) continue; // changed since
    const there = [from, to].filter((p) => repo.tree.has(p));
    if (there.length !== 1) say('a rename was done by half', from, to, 'there:', there.join(' ') || 'none', JSON.stringify(content.slice(0, 60)));
  }

  for (const [c, files] of repo.commits) {
    for (const { path, id } of files) {
      const f = user.files.get(path);
      if (f && id !== null && f.contentOf(id) === undefined) say('a commit has a file as nobody wrote it', c.slice(0, 10), path, JSON.stringify(repo.blobs.get(id)?.slice(0, 200)));
    }
  }

  checkLines(user, repo, say);

  for (const path of repo.tree.keys()) {
    const known = user.files.has(path) || base.has(path) || path === shared || leftover.test(path) || isConflict(path);
    if (!known) say('a file that nobody wrote', path);
  }
  for (const [id, content] of repo.blobs) {
    for (const t of tokensIn(content)) if (t !== user.token) say('another user\'s mark', t, 'in', id);
  }
  return found;
}

// shared is the file that both commands of a user edit.
export const shared = 'chaos/shared.txt';

function checkLines(user, repo, say) {
  if (user.lines.size === 0) return;
  const texts = [...repo.tree].filter(([p]) => p === shared || p.startsWith('chaos/shared.conflict-')).map(([, id]) => repo.blobs.get(id) ?? '');
  const lines = new Map();
  for (const t of texts) {
    for (const l of t.split('\n').filter(Boolean)) {
      const [key, ...rest] = l.split(' ');
      lines.set(key, [...(lines.get(key) ?? []), rest.join(' ')]);
    }
  }
  for (const [key, values] of lines) {
    for (const v of values) if (!user.lines.get(key)?.tried.has(v)) say('a line that nobody wrote', key, v);
  }
  for (const [key, { may }] of user.lines) {
    const there = lines.get(key) ?? [null];
    if (!may.some((v) => there.includes(v))) say('an acknowledged line is lost', key, 'is', there.join(' | '), 'and should be', may.join(' | '));
    if (texts.length === 1 && there.length > 1) say('a line is there more than once', key);
  }
}

// conflicts lists the conflict copies that a repository has.
export const conflicts = (repo) => [...repo.tree.keys()].filter(isConflict);
