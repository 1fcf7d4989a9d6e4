import { OptionError } from '../../src/errors.ts'
import { type Backoff, checkBackoff, type Jitter } from '../../src/job/backoff.ts'
import type { Log } from '../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { checkAttempts, checkTimeoutMs } from '../../src/job/options.ts'
import { silentLog } from '../../src/observe/log.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { EntryVersion } from './entry.ts'

export type Vector = readonly number[] | Float32Array | Float64Array

/** Turns text into a vector. Heed `signal`: it aborts on timeout, on `cancel` and on `close`. */
export type Embed = (
  content: string,
  context: { readonly job: EntryVersion & { readonly attempts: number }; readonly signal: AbortSignal },
) => Promise<Vector> | Vector

export interface Embedding {
  readonly entryType: EntryVersion['entryType']
  readonly entryId: string
  readonly versionId: string
  readonly seq: number
  readonly vector: Vector
}

export type EntryRef = Pick<EntryVersion, 'entryType' | 'entryId'>

export interface StoredVersion {
  readonly seq: number
  readonly versionId: string | null
}

export interface EmbeddingStore {
  /**
   * Writes the vector and returns true, or returns false if a newer version is stored. The queue runs one version of an
   * entry at a time, but a write that hung past its timeout can arrive late, and only the store can refuse it.
   */
  save(embedding: Embedding): Promise<boolean> | boolean
  /**
   * What is stored of these entries, in their order. With it the queue never embeds an older version after a newer one, also
   * when it was idle in between, and `rescan` works. The `seq` of the queue then begins at the time instead of at 1, so that
   * it goes on where the last process ended. Without it a persistent store must compare the version's own time.
   */
  stored?(entries: readonly EntryRef[]): Promise<readonly (StoredVersion | null)[]> | readonly (StoredVersion | null)[]
}

export interface EmbeddingQueueOptions {
  readonly embed: Embed
  readonly store: EmbeddingStore
  /** Embeddings at once. Default: 3. */
  readonly maxConcurrency?: number
  /** Runs of one version in total, including the first. Default: 3. */
  readonly maxRetries?: number
  /** The time limit of one run. Default: 60 000. */
  readonly timeoutMs?: number
  /** How many dead letters are kept; beyond that the oldest are dropped and counted. Default: 1 000. */
  readonly dlqMax?: number
  /** Default: none, so that the waits are exactly 2, 4, 8, 16 and then 30 seconds. */
  readonly jitter?: Jitter
  /** How long `close` waits for running embeddings before it aborts them. Default: 5 000. */
  readonly drainMs?: number
  readonly clock?: Clock
  /** From 0 up to 1, for the jitter. */
  readonly random?: () => number
  readonly log?: Log
}

const QUEUE_NAMES: OptionNames<EmbeddingQueueOptions> = {
  embed: true,
  store: true,
  maxConcurrency: true,
  maxRetries: true,
  timeoutMs: true,
  dlqMax: true,
  jitter: true,
  drainMs: true,
  clock: true,
  random: true,
  log: true,
}

export interface ResolvedOptions {
  readonly embed: Embed
  readonly store: EmbeddingStore
  readonly maxConcurrency: number
  readonly maxRetries: number
  readonly timeoutMs: number
  readonly dlqMax: number
  readonly backoff: Backoff
  readonly drainMs: number
  readonly clock: Clock | null
  readonly random: () => number
  readonly log: Log
}

export function resolveOptions(options: EmbeddingQueueOptions): ResolvedOptions {
  refuseUnknown(options, QUEUE_NAMES, 'createEmbeddingQueue')
  // 2 s, 4 s, 8 s, 16 s, then 30 s.
  const backoff: Backoff = {
    kind: 'exponential',
    base: '1s',
    max: '30s',
    firstExponent: 1,
    jitter: options.jitter ?? 'none',
  }
  checkBackoff(backoff)
  return {
    embed: options.embed,
    store: options.store,
    maxConcurrency: whole('maxConcurrency', options.maxConcurrency ?? 3, 1),
    maxRetries: checkAttempts(options.maxRetries ?? 3),
    timeoutMs: checkTimeoutMs(options.timeoutMs ?? 60_000),
    dlqMax: whole('dlqMax', options.dlqMax ?? 1_000, 0),
    backoff,
    drainMs: whole('drainMs', options.drainMs ?? 5_000, 0),
    clock: options.clock ?? null,
    random: options.random ?? Math.random,
    log: options.log === undefined ? silentLog : calm(options.log),
  }
}

function whole(name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value
  throw new OptionError(`'${name}' is ${value}; give a whole number from ${least}`)
}

/** A log that throws must not take the queue with it. */
function calm(log: Log): Log {
  const quietly =
    (level: keyof Log): Log[keyof Log] =>
    (text, fields) => {
      try {
        log[level](text, fields)
      } catch {
        // There is nowhere left to say it.
      }
    }
  return { debug: quietly('debug'), info: quietly('info'), warn: quietly('warn'), error: quietly('error') }
}
