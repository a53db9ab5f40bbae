// The MCP clients that a user may bring, behind one small interface:
// { tools(): [tool], call(name, args): result, close() }.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HTTPv1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as HTTPv2 } from '@modelcontextprotocol/client';
import { binary } from './server.mjs';

const run = promisify(execFile);
const bin = (name) => join(import.meta.dirname, '../node_modules/.bin', name);
const headers = (key) => ({ requestInit: { headers: { Authorization: `Bearer ${key}` } } });

async function wrap(client, transport) {
  await client.connect(transport);
  return {
    client,
    tools: async () => (await client.listTools()).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
    close: () => client.close(),
  };
}

export const sdkV1 = (url, key) =>
  wrap(new ClientV1({ name: 'e2e-sdk-v1', version: '1' }), new HTTPv1(new URL(url), headers(key)));

export const sdkV2 = (url, key) =>
  wrap(new ClientV2({ name: 'e2e-sdk-v2', version: '1' }), new HTTPv2(new URL(url), headers(key)));

export const sdkV2Modern = (url, key) =>
  wrap(new ClientV2({ name: 'e2e-sdk-v2-modern', version: '1' }, { versionNegotiation: { mode: 'auto' } }), new HTTPv2(new URL(url), headers(key)));

export const mcpRemote = (url, key) =>
  wrap(new ClientV1({ name: 'e2e-mcp-remote', version: '1' }), new StdioClientTransport({
    command: process.execPath,
    args: [bin('mcp-remote'), url, '--allow-http', '--transport', 'http-only', '--header', `Authorization:Bearer ${key}`],
    stderr: 'pipe',
  }));

// satchel stdio needs no key: it asks the running server for one of its own.
export const satchelStdio = (data) =>
  wrap(new ClientV1({ name: 'e2e-satchel-stdio', version: '1' }), new StdioClientTransport({
    command: binary,
    args: ['stdio', '--data', data],
    stderr: 'pipe',
  }));

// The Inspector starts anew for every method.
export function inspector(url, key, era) {
  const inspect = async (...args) => {
    // It fails where a tool's answer is an error, and still prints the answer.
    const { stdout } = await run(process.execPath, [bin('mcp-inspector'), '--cli', url, '--transport', 'http',
      '--protocol-era', era, '--header', `Authorization: Bearer ${key}`, '--format', 'json', '--quiet', ...args], { maxBuffer: 64 << 20 })
      .catch((e) => { if (e.stdout) return e; throw e; });
    return JSON.parse(stdout);
  };
  const unwrap = (r) => r.result ?? r;
  return {
    tools: async () => unwrap(await inspect('--method', 'tools/list', '--strict')).tools,
    call: async (name, args) => unwrap(await inspect('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args))),
    // The problems of the tools' schemas, each with the place and a suggestion.
    warnings: async () => (await run(process.execPath, [bin('mcp-inspector'), '--cli', url, '--transport', 'http', '--protocol-era', era,
      '--header', `Authorization: Bearer ${key}`, '--method', 'tools/list', '--strict'], { maxBuffer: 64 << 20 }).catch((e) => e)).stderr,
    verifySkills: () => run(process.execPath, [bin('mcp-inspector'), '--cli', url, '--transport', 'http', '--protocol-era', era,
      '--header', `Authorization: Bearer ${key}`, '--method', 'skills/list', '--verify'], { maxBuffer: 64 << 20 }),
    close: async () => {},
  };
}
