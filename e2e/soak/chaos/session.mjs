// One client of one user, through kills of the server: it connects anew, gives
// up a call whose server has gone, and tells why a call gave no answer.
import { sdkV1, sdkV2Modern } from '../../lib/clients.mjs';

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// hang is how long a call may go without an answer while its server lives: more
// than a command's time limit, the wait for a sandbox and the saving together.
const hang = 90_000;

// generic is what a caller is told where the server knows no better.
const generic = /Something went wrong in the server/;

export class Session {
  // host is { url, epoch, down, gone(epoch) }.
  constructor(host, key, modern) {
    Object.assign(this, { host, key, connect: modern ? sdkV2Modern : sdkV1, client: null, epoch: -1 });
  }

  async open() {
    if (this.client && this.epoch === this.host.epoch) return;
    await this.close();
    this.epoch = this.host.epoch;
    this.client = await this.connect(this.host.url, this.key);
  }

  // call gives { result }, { gone: true } where the server went away under it, or
  // { error } in the words of the protocol.
  async call(tool, args) {
    await this.host.up();
    const { epoch } = this.host;
    const abort = new AbortController();
    const call = (async () => {
      await this.open();
      // The first era's client takes a schema before its options.
      const options = { signal: abort.signal, timeout: hang + 5000 };
      const request = { name: tool, arguments: args };
      return this.connect === sdkV1 ? this.client.client.callTool(request, undefined, options) : this.client.client.callTool(request, options);
    })();
    const late = Symbol('late');
    let timer;
    try {
      const result = await Promise.race([
        call,
        this.host.gone(epoch).then(() => sleep(3000)).then(() => late),
        new Promise((r) => { timer = setTimeout(r, hang, late); }),
      ]);
      if (result !== late) return { result };
      call.catch(() => {});
      abort.abort();
      return this.host.epoch !== epoch || this.host.down ? { gone: true } : { hung: true };
    } catch (e) {
      const gone = this.host.epoch !== epoch || this.host.down;
      await this.close();
      if (gone) return { gone: true };
      const text = [e.message, e.cause?.message, e.cause?.code].filter(Boolean).join(': ');
      // An answer has a code of JSON-RPC; anything else is a broken connection.
      return { error: text, typed: Number.isInteger(e.code) && !generic.test(text) };
    } finally {
      clearTimeout(timer);
    }
  }

  get id() { return this.client?.client?.transport?.sessionId; }

  async close() {
    const c = this.client;
    this.client = null;
    if (c) await Promise.race([c.close().catch(() => {}), sleep(1000)]);
  }
}

export const isGeneric = (text) => generic.test(text);

// shape is an error's text without what differs from one to the next.
export const shape = (text) => (text.split('\n').find((l) => /^\[[A-Z]{3}/.test(l)) ?? text.split('\n')[0]).slice(0, 260)
  .replace(/\b[0-9a-f]{7,40}\b/g, 'ID').replace(/\d+(\.\d+)?( ms| s| min)?/g, 'N');
