// A space in its owner's own repository, with the real binary, real sandboxes
// and real git over http: what is saved is pushed, what others push comes in,
// and nothing is lost on either side, whatever the remote says.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sdkV1 } from './lib/clients.mjs';
import { git } from './lib/git.mjs';
import { GitServer } from './lib/git-server.mjs';
import { Server, binary, remove, satchel, tempDir } from './lib/server.mjs';
import { until } from './lib/until.mjs';

const canary = 'canary-e2e-5d1f0c9a77';
const data = tempDir('satchel-remotes-');
const server = new Server(data, { env: { SATCHEL_REMOTES_RETRY_MAX: '250ms', SATCHEL_REMOTES_POLL_EVERY: '60h', SATCHEL_LOG_LEVEL: 'debug' } });
const remote = new GitServer(canary);
let key;
let client;
let url;

const meta = (r) => r._meta?.['satchel/result'] ?? {};
const text = (r) => r.content.map((c) => c.text ?? '').join('\n');
const bash = (command, args = {}) => client.call('bash', { command, ...args });
const status = () => satchel(data, 'space', 'status');
const show = (path) => git(remote.dir('notes'), 'show', `main:${path}`);

// eventually adds to a failure how the remote stands and what the server said.
const eventually = (what, f) => until(() => `${what}: ${JSON.stringify(status())}\n${server.output.slice(-3000)}`, f);
const pushed = () => eventually('everything is pushed', () => {
  const s = status();
  return s.state === 'pushed' && s.head === git(remote.dir('notes'), 'rev-parse', 'main');
});

// someone pushes files from a clone of their own.
function someonePushes(files, message = 'By hand') {
  const clone = remote.clone('notes');
  for (const [path, content] of Object.entries(files)) writeFileSync(join(clone, path), content);
  git(clone, 'add', '-A');
  git(clone, 'commit', '-q', '-m', message);
  git(clone, 'push', '-q', 'origin', 'main');
}

// run runs a command that waits for a transfer: not in this thread, which is the
// git server's. It fails where the sync does.
function run(args, input = '') {
  return new Promise((resolve, reject) => {
    const child = execFile(binary, [...args, '--data', data], (err, stdout) => (err ? reject(err) : resolve(stdout)));
    child.stdin.end(input);
  });
}
const sync = () => run(['space', 'sync']);

before(async () => {
  await remote.start();
  url = remote.create('notes');
  const clone = remote.clone('notes');
  writeFileSync(join(clone, 'plan.md'), '# Plan\n\nfirst line\nmiddle\nlast line\n');
  git(clone, 'checkout', '-q', '-b', 'main');
  git(clone, 'add', '-A');
  git(clone, 'commit', '-q', '-m', 'The plan');
  git(clone, 'push', '-q', 'origin', 'main');
  await server.start();
  key = server.firstKey();
  client = await sdkV1(server.url, key);
});

after(async () => {
  await client.close();
  if (server.process.exitCode === null) await server.kill('SIGTERM');
  await remote.stop();
  remove(data);
});

test('a space takes over what its repository has', async () => {
  const out = await run(['space', 'remote', 'set', url, '--trusted', '--token-file', '-', '--json'], canary);
  assert.equal(JSON.parse(out).state, 'pushed');
  const r = await bash('cat plan.md; git log --format=%s -- plan.md');
  assert.match(text(r), /first line[\s\S]*The plan/);
  // What every new space starts with went there too.
  assert.ok(show('resources/instructions.md'));
});

test('what a command saves is pushed in the background, and the answer says so', async () => {
  const r = await bash('echo "# One" > one.md', { comment: 'Note one' });
  // On a busy machine it may be there before the answer is.
  if (meta(r).push !== 'pushed') {
    assert.match(text(r), /committed here; the push to the remote follows/);
    assert.equal(meta(r).push, 'queued');
  }
  await pushed();
  assert.equal(show('one.md'), '# One');
  assert.match(git(remote.dir('notes'), 'log', '-1', '--format=%an %s%n%b', 'main'), /Note one[\s\S]*Satchel-Tool: bash/);
});

test('what someone pushes reaches search, read and the live sandbox, and disturbs no command', async () => {
  const job = meta(await bash('mkdir -p busy; cd busy; exec 3<../plan.md; for i in $(seq 600); do echo $i; sleep 0.1; [ -e /tmp/done ] && break; done; cat <&3 | tail -1; pwd', { background: true })).job;
  someonePushes({ 'theirs.md': '---\ntitle: Theirs\n---\n# Theirs\n\nquokka facts\n', 'plan.md': '# Plan\n\nfirst line changed by hand\nmiddle\nlast line\n' });
  await sync();
  const r = await bash('cat theirs.md; sed -n 3p plan.md; touch /tmp/done');
  assert.match(text(r), /quokka facts[\s\S]*first line changed by hand/);
  assert.match(text(r), /2 files that changed elsewhere were brought in/);
  assert.match(text(await client.call('read', { paths: ['theirs.md'] })), /quokka facts/);
  await eventually('search finds it', async () => /theirs\.md/.test(text(await client.call('search', { query: 'quokka' }))));
  const out = await eventually('the job ends', async () => {
    const o = text(await bash(`cat ${job.dir}/status 2>/dev/null; tail -2 ${job.dir}/stdout`));
    return /\/space\/busy/.test(o) && o;
  });
  assert.match(out, /last line\n\/space\/busy/, 'its open file and working directory stayed');
});

test('a client is notified of what someone pushes', async () => {
  const got = [];
  client.client.fallbackNotificationHandler = async (n) => { got.push(n.params?.uri); };
  await client.client.subscribeResource({ uri: 'satchel://theirs.md' });
  someonePushes({ 'theirs.md': '# Theirs\n\nquokka facts, corrected\n' });
  await sync();
  await eventually('the notification', () => got.includes('satchel://theirs.md'));
});

test('edits of different lines are merged; of the same lines, both are kept and told', async () => {
  someonePushes({ 'plan.md': '# Plan\n\nfirst line, theirs\nmiddle\nlast line\n' });
  await bash("sed -i 's/^last line$/last line, ours/' plan.md");
  await pushed();
  assert.equal(show('plan.md'), '# Plan\n\nfirst line, theirs\nmiddle\nlast line, ours');
  await bash('true');

  someonePushes({ 'plan.md': '# Plan\n\nTHEIRS\nmiddle\nlast line, ours\n' });
  await bash("sed -i 's/^first line.*$/OURS/' plan.md");
  await pushed();
  assert.match(show('plan.md'), /THEIRS/);
  const copy = git(remote.dir('notes'), 'ls-tree', '--name-only', 'main').split('\n').find((p) => /^plan\.conflict-[0-9a-f]+\.md$/.test(p));
  assert.ok(copy, 'a conflict copy');
  assert.match(show(copy), /OURS/);
  const told = text(await bash('ls'));
  assert.ok(told.includes(copy) && /plan\.md/.test(told), told);
  assert.match(told.slice(told.indexOf('\n[')), /plan\.conflict-/, 'the next answer says it beside the listing');
  assert.doesNotMatch(text(await bash('true')), /plan\.conflict-/, 'and says it once');
});

test('a secret stays in the sandbox, survives a crash, and is saved once a person allows it', async () => {
  const secret = ['AKIA', 'Q7ZP', 'LM5T', 'XW3K', '2RVB'].join('');
  const r = await bash(`printf 'id\\n%s\\n' ${secret} > aws.md; echo fine > fine.md`);
  const t = text(r);
  assert.match(t, /NOT COMMITTED/);
  assert.match(t, /aws\.md.*Line 2/);
  const fingerprint = /satchel space allow (?:--user \S+ )?([0-9a-f]{20})/.exec(t)?.[1];
  assert.ok(fingerprint, t);
  assert.deepEqual(meta(r).files.map((f) => f.path), ['fine.md'], 'the rest is committed');
  assert.ok(!server.output.includes(secret), 'the log does not have it');
  await pushed();

  await server.kill('SIGKILL');
  await server.start();
  await client.close();
  client = await sdkV1(server.url, key);
  assert.equal(status().held[0]?.path, 'aws.md');
  const again = await bash('cat aws.md');
  assert.ok(text(again).includes(secret), 'the file is back');
  assert.match(text(again), /aws\.md/);
  assert.ok(meta(again).held?.some((h) => h.path === 'aws.md'), 'and is still named');

  satchel(data, 'space', 'allow', fingerprint);
  const saved = await bash('true');
  assert.ok(meta(saved).files?.some((f) => f.path === 'aws.md'), text(saved));
  await pushed();
  assert.match(show('aws.md'), new RegExp(secret));
  assert.deepEqual(status().held, []);
});

test('a push that the remote refuses for a secret is told, and a purge lets the rest through', async () => {
  await bash('echo before > before.md', { comment: 'Before' });
  await pushed();
  remote.refuse('notes', 'git grep -q opensesame $new', [
    'error: GH013: Repository rule violations found for refs/heads/main.', '', '- GITHUB PUSH PROTECTION',
    '  —————————————————————————————————————————', '    - Push cannot contain secrets', '',
  ].join('\n'));
  await bash('printf "one\\npassword: opensesame\\nthree\\n" > bad.md', { comment: 'Bad' });
  await bash('echo after > after.md', { comment: 'After' });
  const s = await eventually('the refusal is known', () => { const s = status(); return s.state === 'failed' && s; });
  assert.equal(s.problem, 'secret');
  assert.match(s.remedy, /satchel space purge/);
  const told = text(await bash('echo more >> after.md'));
  assert.match(told, /NOT PUSHED/);
  assert.match(told, /purge/);

  const out = satchel(data, 'space', 'purge', 'bad.md:2');
  assert.deepEqual(out.files, ['bad.md']);
  await pushed();
  assert.match(show('bad.md'), /^one\n.*\nthree$/);
  assert.doesNotMatch(show('bad.md'), /opensesame/);
  assert.equal(show('after.md'), 'after\nmore');
  remote.refuse('notes', '');
  assert.throws(() => execFileSync('grep', ['-rqa', 'opensesame', data]), 'nothing of it is left on disk, the index included');
  assert.match(text(await bash('cat bad.md after.md; git log -3 --format=%s')), /one[\s\S]*after\nmore[\s\S]*After/);
});

test('a remote that fails is told with what to do, and is taken up again by itself', async () => {
  remote.answer = 503;
  const r = await bash('echo 503 > waiting.md');
  assert.match(meta(r).commit, /^[0-9a-f]{40}$/);
  await eventually('the failure is known', () => status().problem === 'server');
  remote.answer = null;
  await pushed();
  assert.equal(show('waiting.md'), '503');

  const password = remote.password;
  remote.password = 'another';
  await bash('echo 401 > waiting.md');
  const s = await eventually('the refused token is known', () => { const s = status(); return s.problem === 'auth' && s; });
  assert.ok(s.remedy, JSON.stringify(s));
  await assert.rejects(sync, /not in step/);
  remote.password = password;
  await sync();
  await pushed();
});

test('the token reaches no log, no file, no sandbox and no answer', async () => {
  const inside = text(await bash(`grep -ra ${canary} /space /run /tmp /etc /proc/*/environ 2>/dev/null | grep -v "grep -ra" | head; env; git config -l; git remote -v`));
  assert.ok(!inside.replaceAll(`grep -ra ${canary}`, '').includes(canary), inside);
  assert.ok(!server.output.includes(canary));
  const base64 = Buffer.from(`x-access-token:${canary}`).toString('base64');
  for (const needle of [canary, base64]) {
    assert.throws(() => execFileSync('grep', ['-rqa', needle, data]), `${needle} is in the data directory`);
  }
  assert.ok(!JSON.stringify(status()).includes(canary));
});

test('git finds nothing wrong on either side', async () => {
  await pushed();
  git(remote.dir('notes'), 'fsck', '--full', '--strict');
  git(status().space.repository, 'fsck', '--full', '--strict');
});
