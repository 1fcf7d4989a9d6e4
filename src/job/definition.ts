import type { StandardSchemaV1 } from '@standard-schema/spec'
import { OptionError } from '../errors.ts'
import type { Duration } from '../time/duration.ts'
import { type Backoff, checkBackoff, checkBackoffNames } from './backoff.ts'
import type { StoredJob, Tenant } from './job.ts'
import type { JsonOnly } from './json.ts'
import { type Ages, type AgesMs, checkKeep, checkKeepDead, checkRetention, type RemoveOption } from './keep.ts'
import { type OptionNames, refuseUnknown } from './known-options.ts'
import { checkByName } from './named-jobs.ts'
import {
  ATTEMPTS_DEFAULT,
  checkAttempts,
  checkLeaseMs,
  checkLimit,
  checkPriority,
  checkTimeoutMs,
  checkType,
  LEASE_DEFAULT_MS,
  PRIORITY_DEFAULT,
  TIMEOUT_DEFAULT_MS,
} from './options.ts'
import type { Predecessor } from './predecessors.ts'
import { checkDeclared, type DeclaredSchedule, type SchedulePlan } from './schedule.ts'
import { type Concurrency, checkConcurrency, type SharedSlots } from './slots.ts'
import { checkTags } from './tags.ts'

/** A structured log: a sentence and fields. Fields hold ids and sizes, never payloads. */
export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

/** The job that a handler runs. */
export interface RunningJob {
  readonly id: string
  readonly type: string
  /** The type, or the name that the job was given within it: on Redis BullMQ's name of the job. */
  readonly name: string
  /** 1 for the first start. */
  readonly attempt: number
  readonly attempts: number
  readonly priority: number
  readonly key: string | null
  readonly latestKey: string | null
  readonly tenant: Tenant | null
  readonly createdAtMs: number
  /** The fencing token of this start. Store it with your own rows to refuse a late worker there too. */
  readonly token: string
}

export interface JobContext<Payload> {
  readonly payload: Payload
  /** Aborts on a timeout, a lost lease or a cancellation, and when a stopping worker has waited for its `drain` time. */
  readonly signal: AbortSignal
  /** Stores the progress of the job: any JSON value. Resolves to false when the lease is lost. */
  progress(value: unknown): Promise<boolean>
  readonly log: Log
  readonly job: RunningJob
  /** The jobs that this one waited for (`after`), with their results, in the order given. */
  readonly after: readonly Predecessor[]
}

export type Handler<Payload, Result> = (context: JobContext<Payload>) => Promise<Result> | Result

/** Hooks observe. An error in a hook becomes a `hook.error` event and does not affect the job. */
export interface Hooks {
  /** `stored` has the payload as text, not checked yet, and the options that the job was enqueued with. */
  onStart?(job: RunningJob, stored: StoredJob): unknown
  onComplete?(job: RunningJob, result: unknown): unknown
  /** Called after every failed attempt. `final`: the job is now a dead letter. */
  onFailed?(job: RunningJob, error: unknown, final: boolean): unknown
  onProgress?(job: RunningJob, progress: unknown): unknown
}

export interface JobSpec<Schema extends StandardSchemaV1, Result> {
  readonly type: string
  /** Any Standard Schema: zod, valibot, arktype. Its input must be JSON. */
  readonly payload?: Schema & JsonOnly<StandardSchemaV1.InferInput<Schema>>
  /** The version of the payload's shape. Default: 1. */
  readonly version?: number
  /** Converts a payload stored under an older version to the current shape, before validation. */
  readonly upcast?: (payload: unknown, from: number) => unknown
  /** Starts in total, the first included. Default: 3. */
  readonly attempts?: number
  /** Default: exponential from 1s to 1h, with up to 1s of jitter. */
  readonly backoff?: Backoff
  /** Default: 5m. */
  readonly timeout?: Duration
  /** 1 (first) to 10 (last). Default: 5. */
  readonly priority?: number
  /** How long a claim lasts without renewal. Default: 60s. */
  readonly lease?: Duration
  /** The most jobs of this type at once: a number in one worker, `{ max }` over all. Default: the worker's own concurrency. */
  readonly concurrency?: Concurrency
  /** At most `max` starts in any `per`, over all workers. */
  readonly limit?: { readonly max: number; readonly per: Duration }
  /** Purging its dead letters needs `force`, and their alerts are critical. */
  readonly critical?: boolean
  /** The tags of its jobs, unless an enqueue gives its own. */
  readonly tags?: readonly string[]
  /** True: jobs are removed when they complete. A number: the newest that many stay. */
  readonly removeOnComplete?: RemoveOption
  /** The same for dead letters. Each removal leaves an audit entry. Refused for critical types. */
  readonly removeOnFail?: RemoveOption
  /** How long finished jobs stay, where it differs from the keeper's policy. */
  readonly retention?: Ages
  /** A cron schedule: `'0 3 * * *'`, or an object with a time zone, a payload and more. Stored when a worker starts. */
  readonly schedule?: DeclaredSchedule<StandardSchemaV1.InferInput<Schema>>
  readonly hooks?: Hooks
  /**
   * For a queue whose jobs have many names, as BullMQ's programs fill them: the definition whose type is a job's name
   * checks, runs and retries that job. Other names get this one's `run`. `concurrency`, `limit`, `lease`, metrics and
   * pauses hold for the whole queue.
   */
  readonly byName?: readonly AnyJob[]
  readonly run?: Handler<StandardSchemaV1.InferOutput<Schema>, Result>
}

/** A job definition with all defaults resolved, as `defineJob` returns it. */
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
  /** In one worker; `slots`: over all workers. */
  readonly concurrency: number | null
  readonly slots: SharedSlots | null
  readonly limit: { readonly max: number; readonly perMs: number } | null
  readonly critical: boolean
  readonly tags: readonly string[]
  /** How many completed jobs of the type stay. Null: all, until retention removes them. */
  readonly keepCompleted: number | null
  readonly keepDead: number | null
  readonly retention: AgesMs
  readonly schedule: (SchedulePlan & { readonly name: string }) | null
  readonly hooks: Hooks
  readonly byName: ReadonlyMap<string, AnyJob> | null
  /** Null: this definition can be enqueued, not worked. */
  readonly run: Handler<Output, Result> | null
  /** The same job with a handler, so that a web server can enqueue it without importing the worker's code. */
  handledBy<Answer>(run: Handler<Output, Answer>): HandledJob<Input, Output, Answer>
}

/** A definition with a handler: what `mill.work` takes. */
export interface HandledJob<Input = unknown, Output = unknown, Result = unknown>
  extends JobDefinition<Input, Output, Result> {
  readonly run: Handler<Output, Result>
}

/**
 * Any definition, for lists of jobs. Handlers are contravariant in their payload, so `unknown` would not fit. Whether it
 * has a handler is checked when a worker starts.
 */
// biome-ignore lint/suspicious/noExplicitAny: the only type that a list of differently typed jobs is assignable to
export interface AnyJob extends Omit<JobDefinition<any, any, any>, 'run'> {
  // biome-ignore lint/suspicious/noExplicitAny: a handler, or null
  readonly run: any
}

/** A definition with a handler, or one whose type no longer says. */
// biome-ignore lint/suspicious/noExplicitAny: see AnyJob
export type AnyHandledJob = HandledJob<any, any, any>

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
  tags: true,
  removeOnComplete: true,
  removeOnFail: true,
  retention: true,
  schedule: true,
  hooks: true,
  byName: true,
  run: true,
}

const HOOK_NAMES: OptionNames<Hooks> = {
  onStart: true,
  onComplete: true,
  onFailed: true,
  onProgress: true,
}

const LIMIT_NAMES: OptionNames<NonNullable<JobSpec<StandardSchemaV1, unknown>['limit']>> = { max: true, per: true }

/** Unknown names are mistakes, in nested options too. */
function checkNames(spec: Pick<JobSpec<StandardSchemaV1, unknown>, 'backoff' | 'limit' | 'hooks'>): void {
  refuseUnknown<object>(spec, SPEC_NAMES, 'defineJob')
  if (spec.backoff !== undefined) checkBackoffNames(spec.backoff)
  if (spec.limit !== undefined) refuseUnknown(spec.limit, LIMIT_NAMES, `'limit'`)
  if (spec.hooks !== undefined) refuseUnknown(spec.hooks, HOOK_NAMES, `'hooks'`)
}

declare const noHandler: unique symbol
/** The result of a definition without `run`: no handler's return type was there to infer. */
interface NoHandler {
  readonly [noHandler]: true
}

type IsSame<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false

type Defined<Schema extends StandardSchemaV1, Result> =
  IsSame<Result, NoHandler> extends true
    ? JobDefinition<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>>
    : HandledJob<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>, Result>

/**
 * Defines a job: its type, the schema of its payload and how it runs.
 *
 * @example
 * const greet = defineJob({ type: 'greet', payload: z.object({ name: z.string() }), run: ({ payload }) => `Hello ${payload.name}` })
 */
export function defineJob<Schema extends StandardSchemaV1 = StandardSchemaV1<unknown, unknown>, Result = NoHandler>(
  spec: JobSpec<Schema, Result>,
): Defined<Schema, Result> {
  checkNames(spec)
  checkType(spec.type)
  checkBackoff(spec.backoff ?? DEFAULT_BACKOFF)
  const definition = {
    type: spec.type,
    // The same schema, with its inferred input and output spelled out.
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
    ...checkConcurrency(spec.concurrency),
    limit: checkLimit(spec.limit),
    tags: checkTags(spec.tags ?? []),
    ...checkFinished(spec),
    schedule: spec.schedule === undefined ? null : checkDeclared(spec.type, spec.schedule as DeclaredSchedule),
    hooks: spec.hooks ?? {},
    byName: checkByName(spec.type, spec.byName),
    run: spec.run ?? null,
  }
  // Without `run`, the handler is null: the definition of a producer.
  return withHandler(definition) as Defined<Schema, Result>
}

function withHandler<Input, Output, Result, Run extends Handler<Output, Result> | null>(
  definition: Omit<JobDefinition<Input, Output, Result>, 'handledBy' | 'run'> & { readonly run: Run },
): JobDefinition<Input, Output, Result> & { readonly run: Run } {
  return Object.freeze({
    ...definition,
    handledBy: <Answer>(run: Handler<Output, Answer>) =>
      withHandler<Input, Output, Answer, Handler<Output, Answer>>({ ...definition, run }),
  })
}

/** The options about finished jobs. */
function checkFinished(
  spec: Pick<
    JobSpec<StandardSchemaV1, unknown>,
    'type' | 'critical' | 'removeOnComplete' | 'removeOnFail' | 'retention' | 'byName'
  >,
) {
  const critical = spec.critical ?? spec.byName?.some((job) => job.critical) ?? false
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
    throw new OptionError(`'upcast' is given but 'version' is 1, so no older payload can exist; raise 'version'`)
  }
  return version
}
