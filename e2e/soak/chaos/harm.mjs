// Shows that the check notices harm: what was read of a repository is tampered
// with, and must then be found wrong.
import assert from 'node:assert/strict';
import { check, shared } from './check.mjs';
import { User, blobId } from './model.mjs';

// tamper does one harm to a repository as it was read.
export function tamper(harm, user, repo, token) {
  const path = user.paths()[0];
  switch (harm) {
    case 'drop': repo.tree.delete(path); break; // an acknowledged file
    case 'flip': { // one of its bytes
      const content = repo.blobs.get(repo.tree.get(path)).replace(/.$/m, '!');
      repo.blobs.set(blobId(content), content);
      repo.tree.set(path, blobId(content));
      break;
    }
    case 'leak': { // another user's mark
      repo.blobs.set(blobId(token), token);
      break;
    }
    case 'commit': repo.commits.delete([...repo.commits.keys()][0]); break;
    case 'half': repo.tree.delete('chaos/0/c'); break;
    case 'line': { // of the file that both edit
      const content = repo.blobs.get(repo.tree.get(shared)).split('\n').slice(1).join('\n');
      repo.blobs.set(blobId(content), content);
      repo.tree.set(shared, blobId(content));
      break;
    }
    case 'stranger': repo.tree.set('chaos/0/who.txt', [...repo.blobs.keys()][0]); break;
    case 'torn': repo.commits.get([...repo.commits.keys()][0])[0].id = blobId('mk0'); break;
    default: throw new Error(`no harm is called ${harm}`);
  }
}

// sample is a user with an acknowledged file, an acknowledged line and a rename
// that was never answered, and the repository that fits.
function sample() {
  const user = new User('u0', 'mk0x0000000000000000');
  const content = `${user.token} hello\n`, line = 'line-1 value';
  const op = (rest) => ({ kind: 'sample', text: '', changes: [], lines: [], ...rest });
  const acknowledged = (o, commit, files) => {
    user.begin(o);
    user.answered(o, { end: 'exited', exit_code: 0, commit, commits: [commit], files, files_total: files.length }, true);
  };
  const a = '1'.repeat(40), b = '2'.repeat(40), c = '3'.repeat(40);
  acknowledged(op({ changes: [{ path: 'chaos/0/a', to: () => content }] }), a, [{ path: 'chaos/0/a', etag: blobId(content) }]);
  acknowledged(op({ changes: [{ path: 'chaos/0/b', to: () => content }] }), b, [{ path: 'chaos/0/b', etag: blobId(content) }]);
  acknowledged(op({ lines: [{ path: shared, key: 'line-1', value: 'value' }] }), c, [{ path: shared, etag: blobId(`${line}\n`) }]);
  const rename = op({ rename: [{ from: 'chaos/0/b', to: 'chaos/0/c', content }], changes: [{ path: 'chaos/0/b', to: () => null }, { path: 'chaos/0/c', to: () => content }] });
  user.begin(rename);
  user.answered(rename, null, false);
  const blobs = new Map([[blobId(content), content], [blobId(`${line}\n`), `${line}\n`]]);
  const tree = new Map([['chaos/0/a', blobId(content)], ['chaos/0/c', blobId(content)], [shared, blobId(`${line}\n`)]]);
  const commits = new Map([[a, [{ path: 'chaos/0/a', id: blobId(content) }]], [b, [{ path: 'chaos/0/b', id: blobId(content) }]], [c, [{ path: shared, id: blobId(`${line}\n`) }]]]);
  return { user, repo: { tree, commits, blobs } };
}

export function selfTest() {
  const { user, repo } = sample();
  assert.deepEqual(check(user, repo, new Set()), [], 'what fits is not called harm');
  assert.deepEqual(user.problems, []);
  const expected = {
    drop: /acknowledged change is lost/, flip: /acknowledged change is lost/, leak: /another user's mark/, commit: /acknowledged commit is not/,
    half: /rename was done by half/, line: /acknowledged line is lost/, stranger: /file that nobody wrote/, torn: /as nobody wrote it/,
  };
  for (const [harm, want] of Object.entries(expected)) {
    const s = sample();
    tamper(harm, s.user, s.repo, 'mk1x1111111111111111');
    assert.match(check(s.user, s.repo, new Set()).join('\n'), want, harm);
  }
  const other = new User('u0', 'mk0x0000000000000000');
  other.hears('mk1x1111111111111111');
  assert.match(other.problems.join(), /another user's mark/);
  const wrong = { kind: 'write', text: '', changes: [{ path: 'chaos/0/a', to: () => 'x' }], lines: [] };
  other.begin(wrong);
  other.answered(wrong, { end: 'exited', exit_code: 0 }, true);
  assert.match(other.problems.join(), /does not tell of its change/);
}
