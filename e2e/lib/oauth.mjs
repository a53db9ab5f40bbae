// What every test of connecting a client needs: a server that people sign in to,
// a person who goes through its pages without a browser, the listener that a
// client waits at, and requests as a resource server sees them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Server, binary, remove, satchelAs, tempDir } from './server.mjs';
import { until } from './until.mjs';

// cleanup collects what is to be done at the end, wherever it was begun; its run
// does it, the last first.
export function cleanup() {
  const all = [];
  const later = (f) => { all.push(f); };
  later.run = async () => {
    while (all.length > 0) {
      let timer;
      // Chromium may never answer that it has closed a tab.
      const late = new Promise((resolve) => { timer = setTimeout(resolve, 30_000); });
      await Promise.race([all.pop()(), late]);
      clearTimeout(timer);
    }
  };
  return later;
}

// serve starts a server in a directory of its own, without sandboxes, until the
// end. lifetime is an access token's, and program is another binary.
export async function serve(later, { lifetime = '7d', env = {}, program = binary } = {}) {
  const data = tempDir('satchel-auth-');
  const server = new Server(data, {
    program,
    env: {
      SATCHEL_SANDBOX_RUNTIME: 'none', SATCHEL_AUTH_ACCESS_LIFETIME: lifetime,
      // The tests come all from one address, faster than people do.
      SATCHEL_AUTH_RATE: '100000', SATCHEL_SERVER_RATE: '100000',
      ...env,
    },
  });
  later(async () => {
    await server.kill('SIGTERM');
    remove(data);
  });
  await server.start();
  const issuer = `http://localhost:${server.port}`;
  return {
    data, server, issuer, mcp: `${issuer}/mcp`,
    run: (...args) => satchelAs({ program }, data, ...args),
    // link is a one-time link with which the first admin, or USER, signs in.
    link: (...args) => satchelAs({ program }, data, 'login-link', ...args).url,
  };
}

// Person is somebody at a browser that shows no pictures and runs no scripts:
// they follow links and redirects within the server, and press buttons.
export class Person {
  constructor(issuer) {
    this.issuer = issuer;
    this.cookies = new Map();
  }

  // go requests a page and follows redirects as long as they stay on the server;
  // it returns { url, status, html, location }, location being where it is sent
  // away to.
  async go(url, init = {}) {
    url = new URL(url, this.issuer);
    for (let hops = 0; hops < 10; hops++) {
      const headers = { Accept: 'text/html', ...init.headers };
      if (this.cookies.size > 0) headers.Cookie = [...this.cookies].map(([k, v]) => `${k}=${v}`).join('; ');
      const r = await fetch(url, { ...init, headers, redirect: 'manual' });
      for (const c of r.headers.getSetCookie()) this.#keep(c);
      const location = r.headers.get('location');
      if (r.status < 300 || r.status >= 400 || !location) {
        return { url, status: r.status, headers: r.headers, html: await r.text(), location: null };
      }
      await r.body?.cancel();
      const next = new URL(location, url);
      if (next.origin !== new URL(this.issuer).origin) return { url, status: r.status, headers: r.headers, html: '', location: next };
      [url, init] = [next, {}];
    }
    throw new Error(`${url}: more than 10 redirects`);
  }

  #keep(header) {
    const [pair, ...attributes] = header.split(';');
    const i = pair.indexOf('=');
    const [name, value] = [pair.slice(0, i).trim(), pair.slice(i + 1).trim()];
    const gone = attributes.some((a) => /^\s*max-age=(0|-\d+)\s*$/i.test(a)) || value === '';
    if (gone) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }

  // press submits the page's form that has a button whose words match, with what
  // is filled in already and fields: { name: value, or [values] }.
  async press(page, button, fields = {}) {
    for (const form of forms(page.html)) {
      const pressed = form.buttons.find((b) => button.test(b.text));
      if (!pressed) continue;
      const body = new URLSearchParams(form.fields);
      for (const [k, v] of Object.entries(fields)) {
        body.delete(k);
        for (const one of [v].flat()) body.append(k, one);
      }
      if (pressed.name) body.append(pressed.name, pressed.value);
      const target = new URL(pressed.action ?? form.action ?? '', page.url);
      if (form.method !== 'post') {
        target.search = body;
        return this.go(target);
      }
      return this.go(target, {
        method: 'POST', body,
        headers: { Origin: page.url.origin, Referer: page.url.origin + '/', 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/x-www-form-urlencoded' },
      });
    }
    throw new Error(`${page.url} (${page.status}) has no button ${button}:\n${page.html.slice(0, 4000)}`);
  }

  // signIn uses a one-time link, and the button of the page that it opens.
  async signIn(link) {
    let page = await this.go(link);
    assert.equal(page.status, 200, page.html);
    page = await this.press(page, /sign in|continue/i);
    assert.ok(this.cookies.has('satchel'), `no session after signing in: ${page.status} ${page.url}\n${page.html.slice(0, 2000)}`);
    return page;
  }

  // consent opens a client's authorization request and lets it in. It returns the
  // URL that the browser is sent to, with the code.
  async consent(authorize, fields) {
    return this.#answer(authorize, allow, fields);
  }

  // refuse does not let it in.
  async refuse(authorize) {
    return this.#answer(authorize, deny);
  }

  async #answer(authorize, button, fields) {
    let page = await this.go(authorize);
    assert.equal(page.status, 200, `${page.url}: ${page.html.slice(0, 4000)}`);
    page = await this.press(page, button, fields);
    if (!page.location) {
      // A scheme of the client's own gets a page with a link to press.
      const away = anchors(page.html).find((a) => !/^https?:|^\//.test(a.href));
      assert.ok(away, `nothing leads back to the client: ${page.status} ${page.url}\n${page.html.slice(0, 4000)}`);
      return new URL(away.href);
    }
    return page.location;
  }
}

// What the consent page's buttons say.
export const allow = /^(allow|connect|approve|yes)/i;
export const deny = /^(deny|cancel|don.t|no\b|refuse)/i;

const unescape = (s) => s.replace(/&(#x?[0-9a-f]+|amp|lt|gt|quot|apos);/gi, (_, e) =>
  ({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" })[e.toLowerCase()] ??
    String.fromCodePoint(/^#x/i.test(e) ? parseInt(e.slice(2), 16) : parseInt(e.slice(1), 10)));

function attributes(tag) {
  const out = {};
  for (const [, name, , a, b, c] of tag.matchAll(/([^\s"'<>/=]+)(\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?/g)) {
    out[name.toLowerCase()] = unescape(a ?? b ?? c ?? '');
  }
  return out;
}

const words = (html) => unescape(html.replace(/<[^>]*>/g, ' ')).replace(/\s+/g, ' ').trim();

const anchors = (html) => [...html.matchAll(/<a\s([^>]*)>([\s\S]*?)<\/a>/gi)].map(([, a, text]) => ({ href: '', ...attributes(a), text: words(text) }));

// forms reads what a page would submit, as a browser without scripts: fields is
// a list of pairs.
function forms(html) {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([, head, inside]) => {
    const form = attributes(head);
    const fields = [];
    const buttons = [];
    for (const [, input, tag, other, rest] of inside.matchAll(/<input\b([^>]*)>|<(button|select|textarea)\b([^>]*)>([\s\S]*?)<\/\2>/gi)) {
      const at = attributes(input ?? other);
      const type = (at.type ?? '').toLowerCase();
      if ('disabled' in at) continue;
      const kind = (tag ?? 'input').toLowerCase();
      if (kind === 'button' && (type === '' || type === 'submit')) buttons.push({ text: words(rest ?? ''), name: at.name, value: at.value ?? '', action: at.formaction });
      else if (kind === 'input' && type === 'submit') buttons.push({ text: at.value ?? '', name: at.name, value: at.value ?? '', action: at.formaction });
      else if (!at.name || kind === 'button' || type === 'button' || type === 'reset') continue;
      else if (type === 'checkbox' || type === 'radio') { if ('checked' in at) fields.push([at.name, at.value ?? 'on']); }
      else if (kind === 'input') fields.push([at.name, at.value ?? '']);
      else if (kind === 'textarea') fields.push([at.name, unescape(rest ?? '')]);
      else {
        const options = [...(rest ?? '').matchAll(/<option\b([^>]*)>([^<]*)/gi)].map(([, o, text]) => ({ ...attributes(o), text: words(text) }));
        const chosen = options.find((o) => 'selected' in o) ?? options[0];
        if (chosen) fields.push([at.name, chosen.value ?? chosen.text]);
      }
    }
    return { action: form.action, method: (form.method ?? 'get').toLowerCase(), fields, buttons };
  });
}

// awaitRedirect listens where a client's redirect arrives. next() is the next URL
// that a browser was sent to.
export async function awaitRedirect(later, { host = 'localhost', path = '/callback' } = {}) {
  const waiting = [];
  const arrived = [];
  const listener = createServer((req, res) => {
    const url = new URL(req.url, uri);
    if (url.pathname !== path) {
      res.writeHead(404).end();
      return;
    }
    res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end('<!doctype html><html lang="en"><title>Connected</title><main><h1>You may close this page.</h1></main></html>');
    const w = waiting.shift();
    if (w) w(url);
    else arrived.push(url);
  });
  listener.listen(0, host);
  await once(listener, 'listening');
  const uri = `http://${host}:${listener.address().port}${path}`;
  later(() => { listener.closeAllConnections(); listener.close(); });
  return { uri, next: () => arrived.length > 0 ? Promise.resolve(arrived.shift()) : new Promise((r) => { waiting.push(r); }) };
}

// rpc sends one message of the protocol's stateless era, and returns the response
// with its answer parsed, be it JSON or an event.
export async function rpc(url, token, method, params = {}) {
  const name = params.name ?? params.uri;
  const r = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...(name && { 'Mcp-Name': name }),
      ...(token && { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0', id: 1, method,
      params: { ...params, _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} } },
    }),
  });
  const text = await r.text();
  const data = /^data:\s*(\{.*\})\s*$/m.exec(text)?.[1] ?? text;
  let answer;
  try { answer = JSON.parse(data); } catch { /* a refusal in words */ }
  return { status: r.status, challenge: r.headers.get('www-authenticate'), answer, text };
}

// refused waits until a token is good for nothing any more, and returns the
// refusal: nothing tells a client that its token expired but being refused.
export function refused(url, token) {
  return until('the token is refused', async () => {
    const r = await rpc(url, token, 'tools/list');
    return r.status === 401 && r;
  });
}
