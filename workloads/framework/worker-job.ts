import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { JobContext, JobDefinition, Log, RunningJob } from '../../src/job/definition.ts'
import type { StoredJob, Tenant } from '../../src/job/job.ts'
import { checkTenant } from '../../src/job/options.ts'
import type { Predecessor } from '../../src/job/predecessors.ts'
import { type EffectiveOptions, optionsOf } from './effective-options.ts'

/** The job as hooks receive it. */
export interface HookedJob extends RunningJob {
  /** What `process` receives as `data`. Until then, and after an invalid payload, what was stored: not checked. */
  readonly data: unknown
  /** With the defaults of the type. */
  readonly opts: EffectiveOptions
  /**
   * As in BullMQ: the starts that are over. In `process`, `onStart` and `onProgress` those before this one; in `onComplete` and
   * `onFailed` this one counts too. `attempt` is the number of this start everywhere.
   */
  readonly attemptsMade: number
  /** When this start began, in milliseconds since 1970, on the worker's clock. */
  readonly processedOn: number
  /** Resolves to false if nothing was stored: the lease is lost, `process` is over or was never called. */
  updateProgress(progress: number | object): Promise<boolean>
}

/** The job as `process` receives it. */
export interface WorkerJob<Data = unknown> extends HookedJob {
  readonly data: Data
  /** Aborts on timeout, a lost lease, cancellation, and at the end of a stop's drain time. */
  readonly signal: AbortSignal
  readonly log: Log
  /** The outcomes of the jobs that this one waited for. */
  readonly after: readonly Predecessor[]
}

/** One start of a job: what its hooks and `process` share. */
export class Start<Data> {
  readonly running: RunningJob
  readonly startedAtMs: number
  readonly #processedOn: number
  readonly #stored: StoredJob | null
  readonly #definition: () => Pick<JobDefinition, 'backoff' | 'timeoutMs' | 'keepCompleted' | 'keepDead'>
  #parsed: { readonly data: unknown } | null = null
  #context: JobContext<Data> | null = null
  #isOver = false
  /** Of an `updateProgress` that came before `process` was called. */
  #early: PromiseWithResolvers<JobContext<Data> | null> | null = null

  constructor(running: RunningJob, { stored, startedAtMs, processedOn, definition }: StartParts) {
    this.#stored = stored
    this.startedAtMs = startedAtMs
    this.#processedOn = processedOn
    this.#definition = definition
    this.running = running
    const tenant = running.tenant ?? this.#tenantInData()
    if (tenant !== running.tenant) this.running = Object.freeze({ ...running, tenant })
  }

  /** `process` is called. */
  begin(context: JobContext<Data>): WorkerJob<Data> {
    this.#context = context
    this.#early?.resolve(context)
    const opts = (): EffectiveOptions => this.#opts()
    return {
      ...this.#facts(this.running.attempt - 1),
      data: context.payload,
      after: context.after,
      get opts() {
        return opts()
      },
      get signal() {
        return context.signal
      },
      get log() {
        return context.log
      },
    }
  }

  /** For a hook while the start goes on. */
  get current(): HookedJob {
    return this.#describe(this.running.attempt - 1)
  }

  /** For a hook when the start is over. */
  end(): HookedJob {
    this.#isOver = true
    this.#early?.resolve(null)
    return this.#describe(this.running.attempt)
  }

  #describe(attemptsMade: number): HookedJob {
    const [data, opts] = [() => this.#data(), () => this.#opts()]
    return {
      ...this.#facts(attemptsMade),
      get data() {
        return data()
      },
      get opts() {
        return opts()
      },
    }
  }

  #facts(attemptsMade: number): Omit<HookedJob, 'data' | 'opts'> {
    const updateProgress: HookedJob['updateProgress'] = (progress) => this.#updateProgress(progress)
    return { ...this.running, attemptsMade, processedOn: this.#processedOn, updateProgress }
  }

  #opts(): EffectiveOptions {
    return optionsOf(this.running, this.#stored, this.#definition())
  }

  #data(): unknown {
    if (this.#context !== null) return this.#context.payload
    this.#parsed ??= { data: parsed(this.#stored?.payload) }
    return this.#parsed.data
  }

  async #updateProgress(progress: number | object): Promise<boolean> {
    if (this.#context === null && !this.#isOver) this.#early ??= Promise.withResolvers()
    const context = this.#context ?? (await this.#early?.promise)
    return (await context?.progress(progress)) ?? false
  }

  /** Producers that know only BullMQ put the tenant into the data. */
  #tenantInData(): Tenant | null {
    if (this.#stored?.payload.includes('"tenantContext"') !== true) return null
    return tenantIn(this.#data())
  }
}

interface StartParts {
  /** Null if the hooks of the definition were replaced. */
  readonly stored: StoredJob | null
  readonly startedAtMs: number
  readonly processedOn: number
  readonly definition: () => Pick<JobDefinition, 'backoff' | 'timeoutMs' | 'keepCompleted' | 'keepDead'>
}

/** The tenant that a producer put into the data, if it is one. */
export function tenantIn(data: unknown): Tenant | null {
  if (typeof data !== 'object' || data === null || !('tenantContext' in data)) return null
  try {
    return checkTenant(data.tenantContext as Tenant)
  } catch {
    return null
  }
}

/** The same schema for data with a tenant in it, which a schema that takes no other fields than its own would refuse. */
export function besideTenant<Input, Data>(schema: StandardSchemaV1<Input, Data>): StandardSchemaV1<Input, Data> {
  const standard = schema['~standard']
  return {
    '~standard': {
      ...standard,
      async validate(value) {
        const whole = await standard.validate(value)
        if (whole.issues === undefined || tenantIn(value) === null) return whole
        const others = Object.entries(Object(value)).filter(([name]) => name !== 'tenantContext')
        const without = await standard.validate(Object.fromEntries(others))
        return without.issues === undefined ? without : whole
      },
    },
  }
}

/** Another program may have stored what is not JSON: then the text. */
function parsed(payload: string | undefined): unknown {
  if (payload === undefined) return null
  try {
    return JSON.parse(payload)
  } catch {
    return payload
  }
}
