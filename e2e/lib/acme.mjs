// A real ACME authority (pebble) with a DNS of its own, and requests to a server
// whose name only that DNS knows.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect as connectH2 } from 'node:http2';
import { createServer as createProxy } from 'node:http';
import { request } from 'node:https';
import { connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { connect as connectTLS } from 'node:tls';
import { freePorts, remove, tempDir } from './server.mjs';
import { until } from './until.mjs';

const day = 86_400;

export class Authority {
  // The authority looks for challenges on these ports, of the address 127.0.0.1,
  // which every name has. Certificates are valid for so many seconds.
  constructor({ httpPort, tlsPort, validity = 90 * day }) {
    Object.assign(this, { httpPort, tlsPort, validity, output: '', dir: tempDir('satchel-acme-') });
  }

  async start() {
    const programs = execFileSync(resolve(import.meta.dirname, '../../scripts/pebble'), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
    const [port, management, dns, dnsManagement] = await freePorts(4);
    this.ca = join(programs, 'cert.pem');
    this.url = `https://127.0.0.1:${port}/dir`;
    this.management = `https://127.0.0.1:${management}`;
    writeFileSync(join(this.dir, 'pebble.json'), JSON.stringify({ pebble: {
      listenAddress: `127.0.0.1:${port}`, managementListenAddress: `127.0.0.1:${management}`,
      certificate: this.ca, privateKey: join(programs, 'key.pem'),
      httpPort: this.httpPort, tlsPort: this.tlsPort, retryAfter: { authz: 1, order: 1 }, keyAlgorithm: 'ecdsa',
      profiles: { default: { description: 'the only one', validityPeriod: this.validity } },
    } }));
    this.processes = [
      this.run(join(programs, 'pebble-challtestsrv'), ['-defaultIPv6', '', '-defaultIPv4', '127.0.0.1', '-dnsserver', `127.0.0.1:${dns}`,
        '-management', `127.0.0.1:${dnsManagement}`, '-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', '']),
      // Some nonces are refused, as they may be; no name stays proven, so that
      // each order is validated.
      this.run(join(programs, 'pebble'), ['-config', join(this.dir, 'pebble.json'), '-dnsserver', `127.0.0.1:${dns}`],
        { PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0', PEBBLE_WFE_NONCEREJECT: '10' }),
    ];
    await until(() => `pebble does not start:\n${this.output}`, () => this.output.includes('ACME directory available') && this.output.includes('Starting management server'));
    const own = readFileSync(this.ca, 'utf8');
    this.root = await this.get('/roots/0', own);
    this.rootFile = join(this.dir, 'root.pem');
    writeFileSync(this.rootFile, this.root);
    return this;
  }

  run(program, args, env = {}) {
    const p = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    for (const s of [p.stdout, p.stderr]) s.setEncoding('utf8').on('data', (t) => { this.output += t; });
    return p;
  }

  get(path, ca) {
    return new Promise((done, fail) => {
      request(this.management + path, { ca }, async (res) => {
        let body = '';
        for await (const chunk of res.setEncoding('utf8')) body += chunk;
        done(body);
      }).on('error', fail).end();
    });
  }

  // orders is how many it has taken.
  orders() {
    return this.output.match(/Added order/g)?.length ?? 0;
  }

  // overHTTP tells whether it looked at a challenge over plain http.
  overHTTP() {
    return this.output.includes('Attempting to validate w/ HTTP');
  }

  async stop() {
    for (const p of this.processes ?? []) {
      const gone = once(p, 'exit');
      if (p.kill('SIGKILL')) await gone;
    }
    remove(this.dir);
  }
}

// Site is a server that an authority knows by a name, and that listens on a port
// of this machine.
export class Site {
  constructor({ name, root, port }) { Object.assign(this, { name, root, port }); }

  options(more = {}) {
    return { host: '127.0.0.1', port: this.port, servername: this.name, ca: this.root, ...more };
  }

  // tls returns the certificate and the protocol of a connection; it fails where
  // the handshake does.
  tls(more = {}) {
    return new Promise((done, fail) => {
      const s = connectTLS(this.options(more), () => {
        const c = s.getPeerCertificate(true);
        done({ serial: c.serialNumber, validTo: new Date(c.valid_to), alpn: s.alpnProtocol, version: s.getProtocol(), chain: c.issuerCertificate?.subject?.CN });
        s.destroy();
      });
      s.on('error', fail);
    });
  }

  // fetch is fetch, but for the address and the authority.
  get fetch() {
    return (url, init = {}) => new Promise((done, fail) => {
      const u = new URL(url);
      const headers = Object.fromEntries(new Headers(init.headers));
      const req = request(this.options({ method: init.method ?? 'GET', path: u.pathname + u.search, headers: { ...headers, host: u.host }, signal: init.signal, agent: false }), (res) => {
        const list = Object.entries(res.headers).flatMap(([k, v]) => [v].flat().map((x) => [k, x]));
        const empty = [204, 304].includes(res.statusCode);
        done(new Response(empty ? null : Readable.toWeb(res), { status: res.statusCode, headers: list }));
      });
      req.on('error', fail);
      req.end(init.body);
    });
  }

  // h2 gets a path over HTTP/2.
  h2(path) {
    return new Promise((done, fail) => {
      const session = connectH2(`https://${this.name}`, { createConnection: () => connectTLS(this.options({ ALPNProtocols: ['h2'] })) });
      session.on('error', fail);
      const req = session.request({ ':path': path });
      req.on('response', (h) => { req.resume(); req.on('end', () => { session.close(); done(h); }); });
      req.on('error', fail);
    });
  }

  // proxy starts an http proxy that knows the name alone, as a machine elsewhere
  // would by its DNS, and returns its URL and how to end it.
  async proxy() {
    const p = createProxy((_, res) => { res.writeHead(403).end(); });
    p.on('connect', (req, socket) => {
      if (req.url !== `${this.name}:443`) { socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'); return; }
      const there = connect(this.port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        there.pipe(socket).pipe(there);
      });
      for (const s of [there, socket]) s.on('error', () => { there.destroy(); socket.destroy(); });
    });
    await once(p.listen(0, '127.0.0.1'), 'listening');
    return { url: `http://127.0.0.1:${p.address().port}`, close: () => { p.close(); p.closeAllConnections(); } };
  }
}
