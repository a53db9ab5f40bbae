// Installs the integrations in the real clients, with the commands of the connect pages. Each
// client lists what it loaded, and signs in at the real server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { cleanup, Person, serve } from './lib/oauth.mjs';
import { remove, tempDir } from './lib/server.mjs';
import { until } from './lib/until.mjs';

const bin = join(import.meta.dirname, 'node_modules/.bin');
const absent = ['claude', 'codex', 'gemini'].filter((name) => !existsSync(join(bin, name)));
const skip = !process.env.CI && absent.length > 0 && `${absent} missing: run npm --prefix e2e ci`;

// plain returns text without the control sequences of a terminal.
const plain = (text) => text.replace(/\x1b\[[0-9;?]*[a-zA-Z]/g, '');

describe('integrations', { concurrency: true, skip }, () => {
  const later = cleanup();
  const scratch = tempDir('satchel-integrations-');
  later(() => remove(scratch));
  let s, person;

  before(async () => {
    s = await serve(later);
    person = new Person(s.issuer);
    await person.signIn(s.link());
  });
  after(later.run);

  // text returns the text of an element of a client's page.
  const text = async (slug, id) => {
    const { html } = await person.go(`/connect/${slug}`);
    const found = new RegExp(`id="${id}"[^>]*>(.*?)</code>`, 's').exec(html);
    assert.ok(found, `${slug} has no element ${id}`);
    return found[1].replace(/<[^>]*>/g, '').replaceAll('&#39;', "'").replaceAll('&#34;', '"').replaceAll('&amp;', '&');
  };

  // shell returns a function that runs commands in a shell with an empty home directory. When
  // a command prints the address of the consent page, the person consents there. The function
  // calls heard with the output so far and the standard input of the command.
  const shell = (name) => {
    const home = join(scratch, name);
    mkdirSync(home);
    const env = { HOME: home, PATH: [bin, dirname(process.execPath), process.env.PATH].join(':'), TERM: 'dumb', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' };
    const run = async (command, { more = {}, heard } = {}) => {
      const p = spawn('sh', ['-c', command], { cwd: home, env: { ...env, ...more } });
      let output = '';
      let consents;
      for (const stream of [p.stdout, p.stderr]) {
        stream.setEncoding('utf8').on('data', (chunk) => {
          output += chunk;
          const url = /https?:\/\/[^\s\x07]+\/oauth\/authorize\?[^\s\x07\x1b]+(?=[\s\x07\x1b])/.exec(output);
          if (url) consents ??= person.consent(url[0]).then((back) => fetch(back));
          heard?.(output, p.stdin);
        });
      }
      if (!heard) p.stdin.end();
      const [code] = await once(p, 'close');
      await consents;
      assert.equal(code, 0, `${command}\n${output}`);
      return output;
    };
    return { home, run };
  };

  // model starts the API of a model that gives every request the same answer. asked holds the
  // requests.
  const model = async () => {
    const asked = [];
    const server = createServer(async (req, res) => {
      let body = '';
      for await (const chunk of req) body += chunk;
      if (req.method !== 'POST' || !req.url.startsWith('/v1/messages?')) return res.writeHead(404).end('{}');
      asked.push(body);
      const { model: name, stream } = JSON.parse(body);
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model: name, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
      if (!stream) {
        return res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ ...message, content: [{ type: 'text', text: 'Fine.' }], stop_reason: 'end_turn' }));
      }
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      for (const event of [
        { type: 'message_start', message },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Fine.' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
        { type: 'message_stop' },
      ]) res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
      res.end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    later(() => { server.closeAllConnections(); server.close(); });
    return { asked, env: { ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.address().port}`, ANTHROPIC_API_KEY: 'none' } };
  };

  test('Claude Code', async (t) => {
    const { home, run } = shell('claude-code');
    await run(await text('claude-code', 'install'));
    const plugin = join(home, '.satchel/claude-code');
    await run(`claude plugin validate ${plugin}`);
    const installed = JSON.parse(await run('claude plugin list --json')).find((p) => p.id === 'satchel@satchel');
    assert.ok(installed?.enabled, JSON.stringify(installed));
    // claude signs in only at a terminal, and treats the end of its input as an interruption.
    await run("script -qefc 'stty cols 4000; claude mcp login plugin:satchel:satchel --no-browser' /dev/null", { heard: () => {} });
    assert.match(await run('claude mcp list'), /plugin:satchel:satchel: .* Connected/);

    await t.test('its reminders reach the model', async () => {
      const { asked, env } = await model();
      const reminder = (name) => JSON.stringify(readFileSync(join(plugin, 'hooks', name), 'utf8').trim()).slice(1, -1);
      // Five messages, each after the answer to the one before.
      let said = 0;
      const heard = (output, input) => {
        if (output.split('"type":"result"').length - 1 < said) return;
        if (said++ === 5) input.end();
        else input.write(JSON.stringify({ type: 'user', message: { role: 'user', content: 'hello' } }) + '\n');
      };
      // The empty first line of the output starts the conversation.
      await run('echo; claude -p --verbose --input-format stream-json --output-format stream-json', { more: env, heard });
      assert.ok(asked.length > 0);
      assert.ok(asked[0].includes(reminder('start.txt')), asked[0].slice(0, 4000));
      // The texts name tools that the model has.
      const words = readFileSync(join(plugin, 'skills/memory/SKILL.md'), 'utf8').matchAll(/`(\w+)`/g);
      const tools = new Set([...words].map(([, name]) => name).filter((name) => name !== 'satchel'));
      assert.ok(tools.size >= 4, [...tools].join());
      for (const name of tools) {
        assert.ok(asked.some((body) => body.includes(`mcp__plugin_satchel_satchel__${name}`)), `the model has no tool ${name}`);
      }
      const { additionalContext } = JSON.parse(readFileSync(join(plugin, 'hooks/stop.json'), 'utf8')).hookSpecificOutput;
      assert.ok(asked.at(-1).includes(JSON.stringify(additionalContext).slice(1, -1)), `no reminder among ${asked.length} requests`);

      asked.length = 0;
      await run('claude -p --continue /compact', { more: env });
      assert.ok(asked.some((body) => body.includes(reminder('summarize.txt'))), 'no reminder for the summary');
    });
  });

  test('Codex', async () => {
    const { run } = shell('codex');
    await run(await text('codex', 'command'));
    const [listed] = JSON.parse(await run('codex mcp list --json 2>/dev/null'));
    assert.equal(listed.transport.url, s.mcp);
    assert.equal(listed.auth_status, 'o_auth');
    // The settings file has the same effect.
    const other = shell('codex-file');
    s.run('integration', 'codex', '--url', s.mcp, '--out', join(other.home, '.codex'));
    const [read] = JSON.parse(await other.run('codex mcp list --json 2>/dev/null'));
    assert.equal(read.transport.url, s.mcp);
  });

  test('Gemini CLI', async () => {
    const { home, run } = shell('gemini-cli');
    // gemini asks whether to trust the directories and the extension.
    await run(`yes | { ${await text('gemini-cli', 'install')}; }`);
    const extension = join(home, '.gemini/extensions/satchel');
    assert.ok(existsSync(join(extension, 'commands/recall.toml')));

    // gemini signs in only in its own terminal, and only with a model that it accepts at its start.
    writeFileSync(join(home, '.gemini/settings.json'), JSON.stringify({ security: { auth: { selectedType: 'gemini-api-key' } } }));
    let screen = '', keys;
    const heard = (output, input) => { screen = plain(output); keys = input; };
    const signedIn = run(`script -qefc 'stty cols 4000 rows 50; gemini -i "/mcp auth satchel"' /dev/null`, { more: { GEMINI_API_KEY: 'none', NO_BROWSER: '1', TERM: 'xterm' }, heard });
    const shows = (pattern) => until(() => `gemini does not show ${pattern}:\n${screen}`, () => pattern.test(screen));
    await shows(/Do you want to continue/);
    keys.write('\r');
    await shows(/reloaded tools/);
    keys.write('\x03');
    await shows(/again to exit/);
    keys.write('\x03');
    await signedIn;
    assert.match(await run('gemini mcp list'), /satchel \(from satchel\): http\S+\/mcp \(http\) - Connected/);
  });
});
