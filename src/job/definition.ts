import type { StandardSchemaV1 } from '@standard-schema/spec'
import { OptionError } from '../errors.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { type Backoff, checkBackoff, checkBackoffNames } from './backoff.ts'
import type { Tenant } from './job.ts'
import { type Ages, type AgesMs, checkKeep, checkKeepDead, checkRetention, type RemoveOption } from './keep.ts'
import { type OptionNames, refuseUnknown } from './known-options.ts'
import {
  ATTEMPTS_DEFAULT,
  checkAttempts,
  checkPriority,
  checkTimeoutMs,
  LEASE_DEFAULT_MS,
  PRIORITY_DEFAULT,
  TIMEOUT_DEFAULT_MS,
} from './options.ts'
import type { Predecessor } from './predecessors.ts'
import { checkDeclared, type DeclaredSchedule, type SchedulePlan } from './schedule.ts'

/** A structured log: a sentence and fields. Fields hold ids and sizes, never payloads (I12). */
export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

/** What a handler may know about the job it runs. */
export interface RunningJob {
  readonly id: string
  readonly type: string
  /** 1 for the first start. */
  readonly attempt: number
  readonly attempts: number
  readonly priority: number
  readonly key: string | null
  readonly latestKey: string | null
  readonly tenant: Tenant | null
  readonly createdAtMs: number
  /** The fence of this start: write it beside your own rows to refuse a late holder there too. */
  readonly token: string
}

export interface JobContext<Payload> {
  readonly payload: Payload
  /** Aborts on timeout, on a lost lease, on cancellation, and when a stopping worker has waited long enough. */
  readonly signal: AbortSignal
  /** Stores how far the job is, any JSON value. Resolves to false when the lease is gone. */
  progress(value: unknown): Promise<boolean>
  readonly log: Log
  readonly job: RunningJob
  /** What became of the jobs that this one came after, with their results, in the order given; empty without any. */
  readonly after: readonly Predecessor[]
}

export type Handler<Payload, Result> = (context: JobContext<Payload>) => Promise<Result> | Result

/** Hooks watch; an error in one is reported and changes nothing about the job. */
export interface Hooks {
  onStart?(job: RunningJob): unknown
  onComplete?(job: RunningJob, result: unknown): unknown
  /** On every failed attempt; `final` when the job is now a dead letter. */
  onFailed?(job: RunningJob, error: unknown, final: boolean): unknown
  onProgress?(job: RunningJob, progress: unknown): unknown
}

export interface JobSpec<Schema extends StandardSchemaV1, Result> {
  readonly type: string
  /** Any Standard Schema: zod, valibot, arktype. */
  readonly payload?: Schema
  /** The version of the payload's shape, 1 unless it has changed. */
  readonly version?: number
  /** Turns a payload stored under an older version into today's shape, before it is validated. */
  readonly upcast?: (payload: unknown, from: number) => unknown
  /** Starts in total. */
  readonly attempts?: number
  readonly backoff?: Backoff
  readonly timeout?: Duration
  readonly priority?: number
  /** How long a claim holds without renewal. */
  readonly lease?: Duration
  /** At most this many at once in one worker. */
  readonly concurrency?: number
  /** At most `max` starts in any `per`, over all workers. */
  readonly limit?: { readonly max: number; readonly per: Duration }
  /** Its dead letters need force to be purged, and their alerts are louder. */
  readonly critical?: boolean
  /** True: its jobs are removed as they complete. A number: so many stay, the newest. */
  readonly removeOnComplete?: RemoveOption
  /** The same for its dead letters; each that goes leaves an entry in the audit. Refused for critical types. */
  readonly removeOnFail?: RemoveOption
  /** How long its finished jobs stay, where that differs from the policy of the keeper. */
  readonly retention?: Ages
  /** Enqueues it on the clock: `'0 3 * * *'`, or with a time zone, a payload and more. Stored when a worker starts. */
  readonly schedule?: DeclaredSchedule
  readonly hooks?: Hooks
  readonly run?: Handler<StandardSchemaV1.InferOutput<Schema>, Result>
}

/** A definition with every default resolved. Made by `defineJob`; plain data but for its functions. */
export interface JobDefinition<Input = unknown, Output = unknown, Result = unknown> {
  readonly type: string
  readonly schema: StandardSchemaV1<Input, Output> | null
  readonly version: number
  readonly upcast: ((payload: unknown, from: number) => unknown) | null
  readonly attempts: number
  readonly backoff: Backoff
  readonly timeoutMs: number
  readonly priority: number
  readonly leaseMs: number
  readonly concurrency: number | null
  readonly limit: { readonly max: number; readonly perMs: number } | null
  readonly critical: boolean
  /** How many completed jobs of the type stay; null: all, until retention. */
  readonly keepCompleted: number | null
  readonly keepDead: number | null
  readonly retention: AgesMs
  readonly schedule: (SchedulePlan & { readonly name: string }) | null
  readonly hooks: Hooks
  readonly run: Handler<Output, Result> | null
  /** The same job with its handler, so that a web server can enqueue without importing the worker's code. */
  handledBy<Answer>(run: Handler<Output, Answer>): JobDefinition<Input, Output, Answer>
}

/** A definition of any payload, for lists of jobs. Handlers are contravariant in their payload, so `unknown` would not fit. */
// biome-ignore lint/suspicious/noExplicitAny: the only type that a list of differently typed jobs is assignable to
export type AnyJob = JobDefinition<any, any, any>

const TYPE_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

const DEFAULT_BACKOFF: Backoff = { kind: 'exponential', base: '1s', max: '1h', jitter: { add: '1s' } }

const SPEC_NAMES: OptionNames<JobSpec<StandardSchemaV1, unknown>> = {
  type: true,
  payload: true,
  version: true,
  upcast: true,
  attempts: true,
  backoff: true,
  timeout: true,
  priority: true,
  lease: true,
  concurrency: true,
  limit: true,
  critical: true,
  removeOnComplete: true,
  removeOnFail: true,
  retention: true,
  schedule: true,
  hooks: true,
  run: true,
}

const HOOK_NAMES: OptionNames<Hooks> = {
  onStart: true,
  onComplete: true,
  onFailed: true,
  onProgress: true,
}

const LIMIT_NAMES: OptionNames<NonNullable<JobSpec<StandardSchemaV1, unknown>['limit']>> = { max: true, per: true }

/** A name that is not known is a mistake, also in what the options consist of. */
function checkNames(spec: Pick<JobSpec<StandardSchemaV1, unknown>, 'backoff' | 'limit' | 'hooks'>): void {
  refuseUnknown<object>(spec, SPEC_NAMES, 'defineJob')
  if (spec.backoff !== undefined) checkBackoffNames(spec.backoff)
  if (spec.limit !== undefined) refuseUnknown(spec.limit, LIMIT_NAMES, `'limit'`)
  if (spec.hooks !== undefined) refuseUnknown(spec.hooks, HOOK_NAMES, `'hooks'`)
}

/**
 * Defines a job: its type, its payload's schema and how it is to be run.
 *
 * @example
 * const greet = defineJob({ type: 'greet', payload: z.object({ name: z.string() }), run: ({ payload }) => `Hello ${payload.name}` })
 */
export function defineJob<Schema extends StandardSchemaV1 = StandardSchemaV1<unknown, unknown>, Result = unknown>(
  spec: JobSpec<Schema, Result>,
): JobDefinition<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>, Result> {
  checkNames(spec)
  checkType(spec.type)
  checkBackoff(spec.backoff ?? DEFAULT_BACKOFF)
  const definition = {
    type: spec.type,
    // The spec's schema is exactly this one; only its inferred halves are named here.
    schema: (spec.payload ?? null) as StandardSchemaV1<
      StandardSchemaV1.InferInput<Schema>,
      StandardSchemaV1.InferOutput<Schema>
    > | null,
    version: checkVersion(spec),
    upcast: spec.upcast ?? null,
    attempts: checkAttempts(spec.attempts ?? ATTEMPTS_DEFAULT),
    backoff: spec.backoff ?? DEFAULT_BACKOFF,
    timeoutMs: checkTimeoutMs(spec.timeout ?? TIMEOUT_DEFAULT_MS),
    priority: checkPriority(spec.priority ?? PRIORITY_DEFAULT),
    leaseMs: checkLeaseMs(spec.lease ?? LEASE_DEFAULT_MS),
    concurrency: checkConcurrency(spec.concurrency),
    limit: checkLimit(spec.limit),
    ...checkFinished(spec),
    schedule: spec.schedule === undefined ? null : checkDeclared(spec.type, spec.schedule),
    hooks: spec.hooks ?? {},
    run: spec.run ?? null,
  }
  return withHandler(definition)
}

type Unhandled<Input, Output, Result> = Omit<JobDefinition<Input, Output, Result>, 'handledBy'>

function withHandler<Input, Output, Result>(
  definition: Unhandled<Input, Output, Result>,
): JobDefinition<Input, Output, Result> {
  return Object.freeze({
    ...definition,
    handledBy: <Answer>(run: Handler<Output, Answer>) => withHandler({ ...definition, run }),
  })
}

function checkType(type: string): void {
  if (typeof type !== 'string' || !TYPE_PATTERN.test(type)) {
    throw new OptionError(
      `'type' is '${type}'; use 1 to 128 letters, digits, '.', '_', ':' or '-', a letter or digit first`,
    )
  }
  // Counts and bounds are records by type: 'constructor' would be found in an empty one.
  if (type in {}) throw new OptionError(`'type' is '${type}', which every object has already; choose another name`)
}

/** What becomes of its jobs when they are over. */
function checkFinished(
  spec: Pick<
    JobSpec<StandardSchemaV1, unknown>,
    'type' | 'critical' | 'removeOnComplete' | 'removeOnFail' | 'retention'
  >,
) {
  const critical = spec.critical ?? false
  const job = { type: spec.type, critical }
  return {
    critical,
    keepCompleted: checkKeep(spec.removeOnComplete ?? false, 'removeOnComplete'),
    keepDead: checkKeepDead(spec.removeOnFail ?? false, job),
    retention: checkRetention(spec.retention ?? {}, job),
  }
}

function checkVersion(spec: { readonly version?: number; readonly upcast?: unknown }): number {
  const version = spec.version ?? 1
  if (!Number.isInteger(version) || version < 1)
    throw new OptionError(`'version' is ${version}; give a whole number from 1`)
  if (spec.upcast !== undefined && version === 1) {
    throw new OptionError(`'upcast' is given but 'version' is 1: there is nothing older; raise 'version'`)
  }
  return version
}

/** Below a tenth of a second a lease would lapse between two ticks of a busy process. */
const LEASE_MS_MIN = 100

function checkLeaseMs(lease: Duration): number {
  const leaseMs = parseDurationMs(lease, 'lease')
  if (leaseMs >= LEASE_MS_MIN) return leaseMs
  throw new OptionError(`'lease' is ${leaseMs} ms; give at least ${LEASE_MS_MIN} ms`)
}

function checkConcurrency(concurrency: number | undefined): number | null {
  if (concurrency === undefined) return null
  if (Number.isInteger(concurrency) && concurrency >= 1) return concurrency
  throw new OptionError(`'concurrency' is ${concurrency}; give a whole number from 1`)
}

function checkLimit(
  limit: { readonly max: number; readonly per: Duration } | undefined,
): { max: number; perMs: number } | null {
  if (limit === undefined) return null
  const perMs = parseDurationMs(limit.per, 'limit.per')
  if (Number.isInteger(limit.max) && limit.max >= 1 && perMs > 0) return { max: limit.max, perMs }
  throw new OptionError(`'limit' needs a whole 'max' from 1 and a 'per' above 0, such as { max: 10, per: '1s' }`)
}
