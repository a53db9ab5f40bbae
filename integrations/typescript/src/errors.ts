import type { components } from './openapi.js';

/** The code of an error: one of the server's, or `network` if the server was not reached. */
export type ErrorCode = components['schemas']['ErrorDetail']['code'] | 'network';

export interface ErrorDetails {
  code: ErrorCode;
  /** The status of HTTP, or 0 without an answer. */
  status: number;
  /** How many seconds the server wants the client to wait; 0 if it does not say. */
  retryAfter?: number;
  cause?: unknown;
}

/** A request that failed. The message says what is wrong and what to do. */
export class SatchelError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryAfter: number;

  constructor(message: string, { code, status, retryAfter = 0, cause }: ErrorDetails) {
    super(message, { cause });
    this.name = new.target.name;
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** The key is not valid, or lacks a right. */
export class UnauthorizedError extends SatchelError {}

/** The server wants the client to wait `retryAfter` seconds. */
export class LimitedError extends SatchelError {}

/** The sandbox of a command could not start, or ended before the command. */
export class SandboxError extends SatchelError {}

/** The server was not reached, or its answer was not complete. */
export class NetworkError extends SatchelError {}

const codes: ReadonlySet<string> = new Set<ErrorCode>([
  'invalid', 'not_found', 'conflict', 'unauthenticated', 'forbidden', 'too_large', 'limited', 'unavailable', 'damaged', 'canceled', 'internal',
  'method_not_allowed', 'unsupported_media_type', 'request_timeout',
]);

/** Returns the error in an answer, or undefined if the answer is not from Satchel. */
export function errorOf(body: unknown, status: number, retryAfter: number, sandbox: boolean): SatchelError | undefined {
  const { error } = (body ?? {}) as { error?: { code?: unknown; message?: unknown } };
  if (typeof error?.code !== 'string' || !codes.has(error.code)) return undefined;
  const details: ErrorDetails = { code: error.code as ErrorCode, status, retryAfter };
  const message = String(error.message);
  switch (error.code) {
    case 'unauthenticated':
    case 'forbidden':
      return new UnauthorizedError(message, details);
    case 'limited':
      return new LimitedError(message, details);
    case 'unavailable':
    case 'internal':
      if (sandbox) return new SandboxError(message, details);
  }
  return new SatchelError(message, details);
}
