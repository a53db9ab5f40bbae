export { Satchel } from './client.js';
export type {
  CallOptions, CommandResult, Fact, File, Remembered, Results, ResultsAndFiles, SatchelOptions, SearchAndReadOptions, SearchOptions, ShellResults, Source, Sources, Statement, SyncStarted,
} from './client.js';
export { LimitedError, NetworkError, SandboxError, SatchelError, UnauthorizedError } from './errors.js';
export type { ErrorCode } from './errors.js';
export type { components, paths } from './openapi.js';
