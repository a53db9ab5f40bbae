import { NetworkError, SandboxError, SatchelError, errorOf } from './errors.js';
import type { components } from './openapi.js';

type Schemas = components['schemas'];

export type Source = Schemas['Source'];
export type Sources = Schemas['Sources'];
export type SyncStarted = Schemas['SyncStarted'];
export type SearchOptions = Omit<Schemas['Search'], 'query' | 'sessionId'>;
export type SearchAndReadOptions = Omit<Schemas['SearchAndRead'], 'query' | 'sessionId'>;
export type Results = Schemas['Results'];
export type ResultsAndFiles = Schemas['ResultsAndFiles'];
export type File = Schemas['File'];
export type CommandResult = Schemas['Ran'];
export type ShellResults = Schemas['ShellResults'];
export type Fact = Schemas['Fact'];
export type Statement = Schemas['StatedFact'];
export type Remembered = Schemas['RememberedResult'];

export interface SatchelOptions {
  /** The server's address, such as https://satchel.example.com. */
  url: string;
  /** An API key or an access token. */
  key: string;
  /** Names the sandbox of commands. The default is a new name. */
  sessionId?: string;
  /** How often a request is repeated; default 3. */
  retries?: number;
  /** The longest wait before the first repetition, in milliseconds; default 250. It doubles each time. */
  backoff?: number;
  /** The longest wait for a server that asks for it, in seconds; default 30. After that the request fails. */
  maxWait?: number;
  /** Replaces the global fetch, which keeps connections open and uses them again. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  body?: object;
  etag?: string | undefined;
  /** The request has the same effect if the server gets it twice. */
  repeat?: boolean;
  /** The request needs a sandbox. */
  sandbox?: boolean;
  signal?: AbortSignal | undefined;
}

const defaults = { retries: 3, backoff: 250, maxWait: 30 };

/** Calls the REST API of a Satchel server. */
export class Satchel {
  readonly #base: string;
  readonly #key: string;
  readonly #options: typeof defaults;
  readonly #fetch: typeof fetch;
  #sessionId: string;

  constructor({ url, key, sessionId, fetch: send, ...rest }: SatchelOptions) {
    const address = new URL(url);
    const local = ['localhost', '127.0.0.1', '[::1]'].includes(address.hostname);
    if (address.protocol !== 'https:' && !(address.protocol === 'http:' && local)) {
      throw new TypeError('Use an https address for a server that is not on this machine: the key would be sent in the clear.');
    }
    if (!key.trim()) throw new TypeError('The key is missing.');
    this.#base = address.origin;
    this.#key = key.trim();
    this.#options = { ...defaults, ...rest };
    this.#fetch = send ?? fetch;
    this.#sessionId = sessionId ?? crypto.randomUUID();
  }

  /** The name of the sandbox. Each call sends it, and keeps the name that the server answers. */
  get sessionId(): string {
    return this.#sessionId;
  }

  /** Lists the sources of the library. */
  sources(options: CallOptions = {}): Promise<Sources> {
    return this.#call({ method: 'GET', path: '/sources', repeat: true, ...options });
  }

  /** Updates a source, or all sources. */
  sync(source?: string, { reset, confirm, ...options }: CallOptions & { reset?: boolean; confirm?: boolean } = {}): Promise<SyncStarted> {
    const path = source === undefined ? '/sync' : `/sync/${encodeURIComponent(source)}`;
    return this.#call({ method: 'POST', path, body: { reset, confirm }, ...options });
  }

  /** Makes the snapshots of all sources again. */
  snapshot(options: CallOptions = {}): Promise<Schemas['Started']> {
    return this.#call({ method: 'POST', path: '/sandbox/snapshot', body: {}, ...options });
  }

  /** Finds pages. */
  search(query: string, { signal, ...search }: SearchOptions & CallOptions = {}): Promise<Results> {
    return this.#call({ method: 'POST', path: '/sandbox/search', body: { query, ...search }, repeat: true, signal });
  }

  /** Reads files and lists directories, in order. The entry of a path that cannot be read has an `error`. */
  async read(paths: string[], options: CallOptions = {}): Promise<File[]> {
    const { files } = await this.#call<Schemas['Files']>({ method: 'POST', path: '/sandbox/read', body: { paths }, repeat: true, ...options });
    return files;
  }

  /** Finds pages and reads the best. */
  searchAndRead(query: string, { signal, ...search }: SearchAndReadOptions & CallOptions = {}): Promise<ResultsAndFiles> {
    return this.#call({ method: 'POST', path: '/sandbox/search-and-read', body: { query, ...search }, repeat: true, signal });
  }

  /** Runs a command over the library. A command that fails is a result with an exit code, and not an error. */
  async bash(command: string, options: CallOptions = {}): Promise<CommandResult> {
    const { results: [result] } = await this.#shell({ command }, options);
    if (!result) throw new NetworkError('The answer of the server has no result.', { code: 'network', status: 200 });
    if (result.end === 'lost') {
      throw new SandboxError('The sandbox ended before the command. Run the command again.', { code: 'unavailable', status: 200 });
    }
    return result;
  }

  /** Runs commands in order, in the same sandbox. If a later command cannot run, `error` says why. */
  bashBatch(commands: string[], options: CallOptions = {}): Promise<ShellResults> {
    return this.#shell({ commands }, options);
  }

  #shell(body: object, options: CallOptions): Promise<ShellResults> {
    return this.#call({ method: 'POST', path: '/sandbox/shell', body, sandbox: true, ...options });
  }

  /** Lists the facts of the key's space. */
  async facts(options: CallOptions = {}): Promise<Fact[]> {
    const { facts } = await this.#call<Schemas['Memory']>({ method: 'GET', path: '/memory', repeat: true, ...options });
    return facts;
  }

  /** Saves facts. Each entry of the result says what became of the fact. */
  async remember(facts: Statement[], options: CallOptions = {}): Promise<Remembered[]> {
    const repeat = facts.every((f) => !f.baseEtag); // the first try may have changed the etag
    const answer = await this.#call<Schemas['Remembered']>({ method: 'PUT', path: '/memory', body: { facts }, repeat, ...options });
    return answer.facts;
  }

  /** Removes a fact. With `etag`, the fact must have this version. */
  async forget(type: string, key: string, { etag, ...options }: CallOptions & { etag?: string } = {}): Promise<void> {
    await this.#call({ method: 'DELETE', path: `/memory/${encodeURIComponent(type)}/${encodeURIComponent(key)}`, etag, ...options });
  }

  async #call<T>(request: Request): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await this.#send<T>(request);
      } catch (error) {
        const { retries, backoff, maxWait } = this.#options;
        if (!(error instanceof SatchelError) || tries >= retries || error.retryAfter > maxWait || !mayRepeat(request, error)) throw error;
        await sleep(Math.max(error.retryAfter * 1000, Math.min(Math.random() * backoff * 2 ** tries, maxWait * 1000)), request.signal);
      }
    }
  }

  async #send<T>({ method, path, body, etag, sandbox = false, signal }: Request): Promise<T> {
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(`${this.#base}/api${path}`, {
        method,
        redirect: 'manual', // a redirect would take the key along
        signal: signal ?? null,
        headers: {
          authorization: `Bearer ${this.#key}`,
          accept: 'application/json',
          ...(body && { 'content-type': 'application/json' }),
          ...(etag !== undefined && { 'if-match': `"${etag}"` }),
        },
        body: body ? JSON.stringify(method === 'POST' ? { ...body, sessionId: this.#sessionId } : body) : null,
      });
      text = await response.text(); // read in full, so that the connection can be used again
    } catch (cause) {
      if (signal?.aborted) throw cause;
      throw new NetworkError(`The server at ${this.#base} cannot be reached (${reason(cause)}).`, { code: 'network', status: 0, cause });
    }
    const { status } = response;
    const answer = /^application\/json\b/.test(response.headers.get('content-type') ?? '') ? parsed(text) : undefined;
    if (answer !== undefined && response.ok) {
      const { sessionId } = answer as { sessionId?: string };
      if (sessionId) this.#sessionId = sessionId;
      return answer as T;
    }
    const error = answer !== undefined ? errorOf(answer, status, Number(response.headers.get('retry-after')) || 0, sandbox) : undefined;
    throw error ?? new NetworkError(`There is no Satchel with an API at ${this.#base}: it answered with ${status}.`, { code: 'network', status });
  }
}

/** Reports whether a request can be sent again after an error. */
function mayRepeat(request: Request, error: SatchelError): boolean {
  if (error.code === 'limited' || refused(error.cause)) return true; // the server has done nothing
  const down = error.code === 'unavailable' || (error.code === 'network' && [0, 502, 503, 504].includes(error.status));
  return down && request.repeat === true;
}

/** Reports whether a connection was refused, so that the server did not get the request. */
function refused(cause: unknown): boolean {
  return innermost(cause)?.code === 'ECONNREFUSED';
}

function innermost(error: unknown): { code?: string; message?: string } | undefined {
  let e = error as { cause?: unknown } | undefined;
  while (e?.cause) e = e.cause as { cause?: unknown };
  return e as { code?: string; message?: string } | undefined;
}

function reason(cause: unknown): string {
  const e = innermost(cause);
  return e?.code ?? e?.message ?? 'no reason';
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => { clearTimeout(timer); reject(signal?.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', stop); resolve(); }, milliseconds);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
