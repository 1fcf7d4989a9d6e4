import type { Mill } from '../../client/mill.ts'
import { lookupIn } from '../../engine/capability-checks.ts'
import { NO_JOBS } from '../../engine/counts.ts'
import type { Counts, KnownWorker, TypeCounts } from '../../engine/engine.ts'
import { lagsOf } from '../../engine/presence.ts'
import { redactUrl } from '../../job/error-record.ts'
import type { JobView } from '../../job/job.ts'
import type { Clock } from '../../time/clock.ts'
import { totalOf } from '../format.ts'

/** Per second since the previous look. Jobs that retention removed are not seen, so a rate is a lower bound. */
export interface Rates {
  readonly enqueued: number
  readonly completed: number
  readonly dead: number
}

export interface TypeLine {
  readonly type: string
  readonly counts: TypeCounts
  /** Null at the first look. */
  readonly rates: Rates | null
  /** Where the store tells how far its workers are behind. */
  readonly lag?: number
}

export interface TopSnapshot {
  readonly url: string
  readonly nowMs: number
  readonly types: readonly TypeLine[]
  readonly total: TypeLine
  readonly running: readonly JobView[]
  /** The waiting job that has been due longest. */
  readonly oldest: JobView | null
  readonly dead: readonly JobView[]
  /** Where the store gives each worker parts of a type: who has what. Null elsewhere. */
  readonly members: readonly KnownWorker[] | null
}

const SHOWN_MAX = 20

/** Remembers the counts of the previous look, for the rates. */
export class TopWatch {
  readonly #mill: Mill
  readonly #url: string
  readonly #clock: Clock
  #before: { readonly counts: Counts; readonly atMs: number } | null = null

  constructor(mill: Mill, url: string, clock: Clock) {
    this.#mill = mill
    this.#url = redactUrl(url)
    this.#clock = clock
  }

  async look(): Promise<TopSnapshot> {
    const mill = this.#mill
    const atMs = this.#clock.monotonicMs()
    const [counts, running, oldest, letters, members] = await Promise.all([
      mill.counts(),
      mill.jobs({ state: 'in_progress', limit: SHOWN_MAX }),
      lookupIn(mill.engine)?.oldestDue() ?? null,
      mill.engine.deadLetters?.list({ limit: SHOWN_MAX }) ?? [],
      mill.engine.workers?.() ?? null,
    ])
    const lags = lagsOf(members ?? [])
    const lagOf = (type: string) => (lags[type] === undefined ? {} : { lag: lags[type] })
    const before = this.#before
    this.#before = { counts, atMs }
    const seconds = before === null ? 0 : (atMs - before.atMs) / 1_000
    const rates = (now: TypeCounts, then: TypeCounts): Rates | null =>
      seconds > 0 ? ratesOf(now, then, seconds) : null
    const total = totalOf(counts)
    return {
      url: this.#url,
      nowMs: this.#clock.nowMs(),
      types: Object.entries(counts)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([type, now]) => ({
          type,
          counts: now,
          rates: rates(now, before?.counts[type] ?? NO_JOBS),
          ...lagOf(type),
        })),
      total: { type: '*', counts: total, rates: rates(total, totalOf(before?.counts ?? {})) },
      running,
      oldest,
      dead: letters.map(({ job }) => job),
      members,
    }
  }
}

function ratesOf(now: TypeCounts, then: TypeCounts, seconds: number): Rates {
  const perSecond = (more: number): number => Math.max(0, more) / seconds
  return {
    enqueued: perSecond(all(now) - all(then)),
    completed: perSecond(now.completed - then.completed),
    dead: perSecond(now.dead - then.dead),
  }
}

function all({ ready, delayed, inProgress, completed, dead }: TypeCounts): number {
  return ready + delayed + inProgress + completed + dead
}

/** Without payloads and results. */
export function toJson({ types, total, running, oldest, dead, ...rest }: TopSnapshot): object {
  return {
    ...rest,
    types: [...types, total],
    running: running.map(facts),
    oldest: oldest === null ? null : facts(oldest),
    dead: dead.map(facts),
  }
}

function facts({ payload: _, result: __, ...shown }: JobView): object {
  return shown
}
