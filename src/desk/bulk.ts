import { OptionError } from '../errors.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import type { Clock } from '../time/clock.ts'
import { diedAtMs, pinned, type Selection, type Target } from './selection.ts'

/**
 * Why a letter was left alone. `changed`: it is no longer a dead letter, its key is taken, or a newer version exists.
 * `unreplayable`: its origin is unknown. `unfinished`, for an erase: the job, or one that comes after it, may still run.
 * `unknown`, for an erase: neither the store nor the audit knows the id.
 */
export type Refusal = 'replayed-too-often' | 'unreplayable' | 'critical' | 'changed' | 'unfinished' | 'unknown'

export interface BulkProgress {
  /** Letters looked at so far. */
  readonly seen: number
  readonly done: number
  readonly refused: Readonly<Partial<Record<Refusal, number>>>
  /** How many letters there are in total, if known. */
  readonly total: number | null
}

export interface BulkOutcome extends BulkProgress {
  /** Nothing was changed; `done` is how many would have been. */
  readonly dryRun: boolean
  /** The signal aborted. Repeat the call to continue. An interrupted dry run has counted only some letters. */
  readonly interrupted: boolean
  /**
   * The letters that were looked at, without those that die later. After a dry run, act on this to do exactly what it
   * counted. After an interruption, it covers all letters that existed at the start.
   */
  readonly selection: Selection
}

export interface BulkOptions {
  /** Only count what would be done. */
  readonly dryRun?: boolean
  /** Letters per second at most. Default: the desk pauses three times as long as it works, to leave the store to workers. */
  readonly rate?: number
  readonly onProgress?: (progress: BulkProgress) => void
  readonly signal?: AbortSignal
  /** Act on letters that the desk would refuse: replayed too often, critical. */
  readonly force?: boolean
}

const BULK_NAMES: OptionNames<BulkOptions> = {
  dryRun: true,
  rate: true,
  onProgress: true,
  signal: true,
  force: true,
}

export interface Bulk<Item extends Target> {
  readonly clock: Clock
  readonly total: number | null
  readonly selection: Selection
  /** Letters acted on at most. Refused ones do not count, or they could keep back all others. */
  readonly limit: number
  pages(pageMax: number): AsyncIterable<readonly Item[]>
  /** Why a letter must not be acted on, or null. */
  against(item: Item): Refusal | null
  /** Acts on the items of one page. False for those that changed meanwhile. */
  act(items: readonly Item[]): Promise<readonly boolean[]>
  /** Items in a page. Default: 100. */
  readonly pageMax?: number
  /** Why one is left alone that the store has refused. Default: `changed`. */
  readonly refusal?: Refusal
}

/** One page is one transaction: large enough to be quick, small enough not to delay workers. */
const PAGE_MAX = 100
/** A dry run takes no locks, so its pages may be larger. */
const DRY_PAGE_MAX = 200
const PAGES_PER_SECOND = 10
/** Without a rate, the desk pauses this many times as long as it worked. */
const REST = 3

export async function runBulk<Item extends Target>(bulk: Bulk<Item>, options: BulkOptions): Promise<BulkOutcome> {
  refuseUnknown(options, BULK_NAMES, 'an act on many letters')
  const { dryRun = false, onProgress, signal } = options
  const rate = checkRate(options.rate)
  const largest = bulk.pageMax ?? PAGE_MAX
  const pageMax = dryRun ? DRY_PAGE_MAX : Math.max(1, Math.min(largest, Math.ceil(rate / PAGES_PER_SECOND)))
  const startedMs = bulk.clock.monotonicMs()
  const refused: Partial<Record<Refusal, number>> = {}
  const refuse = (why: Refusal): void => {
    refused[why] = (refused[why] ?? 0) + 1
  }
  let [seen, acted, done, interrupted] = [0, 0, 0, signal?.aborted ?? false]
  let newestAtMs: number | undefined
  const progress = (): BulkProgress => ({ seen, done, refused: { ...refused }, total: bulk.total })
  for await (const page of interrupted ? [] : bulk.pages(pageMax)) {
    const pageStartedMs = bulk.clock.monotonicMs()
    const admitted: Item[] = []
    for (const letter of page) {
      if (acted + admitted.length >= bulk.limit) break
      seen += 1
      const why = refusalOf(bulk.against(letter), options.force === true)
      if (why === null) admitted.push(letter)
      else refuse(why)
    }
    const answers = dryRun ? admitted.map(() => true) : await bulk.act(admitted)
    acted += admitted.length
    if (page[0] !== undefined) newestAtMs ??= diedAtMs(page[0])
    for (const answer of answers) {
      if (answer) done += 1
      else refuse(bulk.refusal ?? 'changed')
    }
    onProgress?.(progress())
    if (!dryRun) {
      const nowMs = bulk.clock.monotonicMs()
      const pauseMs = Number.isFinite(rate) ? startedMs + (done / rate) * 1_000 - nowMs : (nowMs - pageStartedMs) * REST
      if (pauseMs > 0) await bulk.clock.sleep(pauseMs, signal)
    }
    interrupted = signal?.aborted ?? false
    if (interrupted || acted >= bulk.limit) break
  }
  const count = Number.isFinite(bulk.limit) ? acted : seen
  return {
    ...progress(),
    dryRun,
    interrupted,
    selection: pinned(bulk.selection, newestAtMs, interrupted ? null : count),
  }
}

/** Force overrides what the desk would rather not do, not what cannot be done. */
function refusalOf(why: Refusal | null, isForced: boolean): Refusal | null {
  return isForced && why !== 'unknown' && why !== 'unfinished' ? null : why
}

function checkRate(rate: number | undefined): number {
  if (rate === undefined) return Number.POSITIVE_INFINITY
  if (Number.isFinite(rate) && rate > 0) return rate
  throw new OptionError(`'rate' is ${rate}; give letters per second, above 0`)
}
