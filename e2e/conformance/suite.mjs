// Runs the protocol's conformance suite against a server.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { remove, tempDir } from '../lib/server.mjs';

const program = join(import.meta.dirname, '../node_modules/@modelcontextprotocol/conformance/dist/index.js');
const run = promisify(execFile);

export const versions = ['2025-11-25', '2026-07-28'];

// scenarios returns the names of the suite's scenarios for servers, and the versions that
// each is for: 'extension' for those of an extension.
export async function scenarios() {
  const { stdout } = await run(process.execPath, [program, 'list', '--server']);
  const found = [...stdout.matchAll(/^ +- (\S+) \[(.+)\]$/gm)].map(([, name, of]) => ({ name, versions: of.split(',') }));
  if (found.length === 0) throw new Error(`the suite lists no scenarios:\n${stdout}`);
  return found;
}

// conformance runs every scenario of each version, and the extensions' scenarios that are
// named. It returns a Map from 'VERSION NAME' to the checks of the scenario.
export async function conformance(url, key, extensions = []) {
  const proxy = spawn(process.execPath, [join(import.meta.dirname, 'proxy.mjs'), url, key], { stdio: ['pipe', 'pipe', 'inherit'] });
  const out = tempDir('satchel-checks-');
  try {
    const [port] = await once(proxy.stdout.setEncoding('utf8'), 'data');
    const suite = (version, ...args) => run(process.execPath, [program, 'server', '--url', `http://localhost:${port.trim()}/mcp`,
      '--spec-version', version, '-o', join(out, version), ...args], { maxBuffer: 64 << 20 })
      .catch((e) => { if (e.code !== 1) throw e; }); // 1: a scenario failed
    for (const version of versions) await suite(version, '--suite', 'all');
    for (const name of extensions) await suite(versions.at(-1), '--scenario', name, '--force');
    return new Map(versions.flatMap((version) => readdirSync(join(out, version)).map((dir) => {
      // The suite names the directory server-NAME-TIME, the time with dashes.
      const [, name] = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(dir);
      return [`${version} ${name}`, JSON.parse(readFileSync(join(out, version, dir, 'checks.json'), 'utf8'))];
    })));
  } finally {
    proxy.stdin.end();
    remove(out);
  }
}
