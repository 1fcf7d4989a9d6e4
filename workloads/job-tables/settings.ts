import { OptionError } from '../../src/errors.ts'
import { backoffMs } from '../../src/job/backoff.ts'

/** A job may run its expected duration times the factor of its stage. */
export interface SlaFactors {
  readonly clip: number
  readonly asr: number
  readonly burnin: number
}

export interface TableSettings {
  /** From the end of one run of the reaper to the start of the next. */
  readonly intervalSec: number
  /** For new rows; afterwards the row's `max_attempts` counts. */
  readonly maxAttempts: number
  readonly leaseSec: number
  readonly heartbeatSec: number
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
  readonly slaFactors: SlaFactors
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The variables of each setting, the strongest first, and the default. */
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

/** `max_attempts` is an INT in Postgres. */
const INT_MAX = 2 ** 31 - 1
/** A century: beyond it, sums would leave the date range of JavaScript or Postgres. */
const SECONDS_MAX = 3_155_760_000

/**
 * Reads the settings from the environment. An empty variable counts as unset. An invalid value is refused: a reaper with
 * a guessed setting would end healthy jobs, or none.
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

/** `Burn-in`, `burn_in` and `burnin` are one stage. The SQL normalises stages in the same way. */
export function foldStage(stage: string): string {
  return stage.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** The factor for rows whose stage has none. */
export function factorOfTable(table: string, factors: SlaFactors): number | null {
  return table === 'asr_jobs' ? factors.asr : null
}

/**
 * The factor of the stage, or of the table. Null means no deadline: ending healthy work on a guess is worse than waiting
 * for its heartbeats to stop.
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

/** From when heartbeats are refused. Null without an expected duration or a factor. */
export function deadlineMs(job: Started, factors: SlaFactors): number | null {
  const factor = factorOf(job.table, job.stage, factors)
  if (factor === null || job.startedAtMs === null || job.expectedDurationMs === null) return null
  return job.startedAtMs + job.expectedDurationMs * factor
}

type Backoff = Pick<TableSettings, 'backoffBaseMs' | 'backoffMaxMs'>

/**
 * The wait before the next start: base × 2^(attempt − 1), up to the maximum. `attempt` is the start that failed; 0, for
 * rows that were started by code which does not count, waits like 1. `requeueDelay` in sql.ts is the same in SQL.
 */
export function requeueDelayMs(attempt: number, { backoffBaseMs, backoffMaxMs }: Backoff): number {
  const backoff = { kind: 'exponential', base: backoffBaseMs, max: backoffMaxMs } as const
  return backoffMs(backoff, Math.max(1, attempt), () => 0)
}
