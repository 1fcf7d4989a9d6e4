import { OptionError } from '../../src/errors.ts'
import { backoffMs } from '../../src/job/backoff.ts'

/** How many times its expected duration a job may run, by what is done with the media. */
export interface SlaFactors {
  readonly clip: number
  readonly asr: number
  readonly burnin: number
}

/** The figures of document E. */
export interface TableSettings {
  /** From the end of one run of the reaper to the start of the next. */
  readonly intervalSec: number
  /** What a new row gets; afterwards the row's own `max_attempts` counts. */
  readonly maxAttempts: number
  readonly leaseSec: number
  readonly heartbeatSec: number
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
  readonly slaFactors: SlaFactors
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The names that set each figure, the strongest first, then the figure when none is set (X177). */
const INTERVAL = [['REAPER_INTERVAL_SEC'], 60] as const
const MAX_ATTEMPTS = [['JOB_MAX_ATTEMPTS', 'QUEUE_MAX_ATTEMPTS'], 3] as const
const LEASE = [['DEFAULT_LEASE_SEC', 'QUEUE_VISIBILITY_SEC'], 300] as const
const HEARTBEAT = [['HEARTBEAT_SEC'], 15] as const
const BACKOFF_MIN = [['JOB_RETRY_BACKOFF_MS_BASE', 'QUEUE_RETRY_BACKOFF_MS_BASE'], 1_000] as const
const BACKOFF_MAX = [['JOB_RETRY_BACKOFF_MS_MAX', 'QUEUE_RETRY_BACKOFF_MS_MAX'], 60_000] as const
const CLIP = [['CLIP_SLA_FACTOR'], 6] as const
const ASR = [['ASR_SLA_FACTOR'], 12] as const
const BURNIN = [['BURNIN_SLA_FACTOR'], 8] as const

type Rule = readonly [names: readonly string[], otherwise: number]

/** Postgres' INT, which is what `max_attempts` is. */
const INT_MAX = 2 ** 31 - 1
/** A century: beyond it, adding to a time would leave the calendar of JavaScript or Postgres sooner or later. */
const SECONDS_MAX = 3_155_760_000

/**
 * The figures that an environment asks for. A name that is absent or empty is not set; one that cannot be meant is
 * refused, because a reaper that runs with a guessed figure kills healthy jobs or none.
 *
 * @example
 * const settings = readTableSettings({ QUEUE_MAX_ATTEMPTS: '7', JOB_MAX_ATTEMPTS: '4' }) // maxAttempts: 4
 */
export function readTableSettings(environment: Environment): TableSettings {
  const whole = (rule: Rule, max: number, min = 1): number => read(environment, rule, { min, max, whole: true })
  const positive = (rule: Rule, max: number): number => read(environment, rule, { min: 0.001, max, whole: false })
  const settings = {
    intervalSec: positive(INTERVAL, SECONDS_MAX),
    maxAttempts: whole(MAX_ATTEMPTS, INT_MAX),
    leaseSec: positive(LEASE, SECONDS_MAX),
    heartbeatSec: positive(HEARTBEAT, SECONDS_MAX),
    backoffBaseMs: whole(BACKOFF_MIN, SECONDS_MAX * 1_000, 0),
    backoffMaxMs: whole(BACKOFF_MAX, SECONDS_MAX * 1_000, 0),
    slaFactors: { clip: positive(CLIP, 1e6), asr: positive(ASR, 1e6), burnin: positive(BURNIN, 1e6) },
  }
  if (settings.backoffBaseMs > settings.backoffMaxMs) {
    throw new OptionError(
      `the backoff starts at ${settings.backoffBaseMs} ms, above its maximum of ${settings.backoffMaxMs} ms; ` +
        'raise QUEUE_RETRY_BACKOFF_MS_MAX or lower QUEUE_RETRY_BACKOFF_MS_BASE',
    )
  }
  return settings
}

interface Range {
  readonly min: number
  readonly max: number
  readonly whole: boolean
}

function read(environment: Environment, [names, otherwise]: Rule, { min, max, whole }: Range): number {
  const name = names.find((candidate) => (environment[candidate] ?? '').trim() !== '')
  if (name === undefined) return otherwise
  const text = (environment[name] ?? '').trim()
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max && (!whole || Number.isInteger(value))) return value
  throw new OptionError(`${name} is '${text}'; give ${whole ? 'a whole number' : 'a number'} from ${min} to ${max}`)
}

/** `Burn-in`, `burn_in` and `burnin` are one stage. The statements fold a row's stage in the same way. */
export function foldStage(stage: string): string {
  return stage.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** What the factors are when the stage does not tell: the table's own, or none. */
export function factorOfTable(table: string, factors: SlaFactors): number | null {
  return table === 'asr_jobs' ? factors.asr : null
}

/**
 * How many times its expected duration a job may run, by its stage, else by its table. Null, so no deadline, where
 * neither tells: ending healthy work on a guess is worse than waiting for its heartbeats to stop.
 */
export function factorOf(table: string, stage: string | null, factors: SlaFactors): number | null {
  const folded = stage === null ? '' : foldStage(stage)
  const entry = Object.entries(factors).find(([name]) => name === folded)
  return entry?.[1] ?? factorOfTable(table, factors)
}

export interface Started {
  readonly table: string
  readonly stage: string | null
  readonly startedAtMs: number | null
  readonly expectedDurationMs: number | null
}

/** When heartbeats begin to be refused (X179). Null: never, because the duration was not estimated or has no factor. */
export function deadlineMs(job: Started, factors: SlaFactors): number | null {
  const factor = factorOf(job.table, job.stage, factors)
  if (factor === null || job.startedAtMs === null || job.expectedDurationMs === null) return null
  return job.startedAtMs + job.expectedDurationMs * factor
}

type Figures = Pick<TableSettings, 'backoffBaseMs' | 'backoffMaxMs'>

/**
 * The wait before the next start: base × 2^(attempt − 1), never above the maximum (X178). `attempt` is the start that
 * just failed. A row that was started by code which does not count has 0, and waits like one after its first start.
 * `REQUEUE_DELAY` in statements.ts is the same in SQL, since the reaper asks and answers in one statement.
 */
export function requeueDelayMs(attempt: number, { backoffBaseMs, backoffMaxMs }: Figures): number {
  const backoff = { kind: 'exponential', base: backoffBaseMs, max: backoffMaxMs } as const
  return backoffMs(backoff, Math.max(1, attempt), () => 0)
}
