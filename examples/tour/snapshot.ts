import type { JobView, Mill } from 'millrace'
import type { TypeCounts } from 'millrace/engine'
import { totalOf } from '../../src/cli/format.ts'

/** What one frame of the view shows. */
export interface Snapshot {
  readonly url: string
  /** The URL of the dashboard. */
  readonly page: string
  readonly nowMs: number
  readonly upMs: number
  readonly totals: TypeCounts
  /** Jobs settled by this process in each of the last seconds, the current one last. */
  readonly settledPerSecond: readonly number[]
  readonly running: readonly JobView[]
  readonly recent: readonly JobView[]
  readonly dead: readonly JobView[]
}

const RATE_SECONDS = 24

/** Reads the store through the public API and counts events. */
export class Watch {
  readonly #mill: Mill
  readonly #url: string
  readonly #page: string
  readonly #startedMs = Date.now()
  readonly #settledAtMs: number[] = []

  constructor(mill: Mill, url: string, page: string) {
    this.#mill = mill
    this.#url = url
    this.#page = page
    mill.events.on('job.settled', () => this.#settledAtMs.push(Date.now()))
  }

  async look(): Promise<Snapshot> {
    const mill = this.#mill
    const [counts, running, newest, dead] = await Promise.all([
      mill.counts(),
      mill.jobs({ state: 'in_progress', limit: 8 }),
      mill.jobs({ limit: 30 }),
      mill.jobs({ state: 'dead_letter', limit: 30 }),
    ])
    const nowMs = Date.now()
    return {
      url: this.#url,
      page: this.#page,
      nowMs,
      upMs: nowMs - this.#startedMs,
      totals: totalOf(counts),
      settledPerSecond: this.#rates(nowMs),
      running,
      recent: newest.filter((view) => view.state !== 'in_progress'),
      dead,
    }
  }

  #rates(nowMs: number): readonly number[] {
    const sinceMs = nowMs - RATE_SECONDS * 1_000
    while ((this.#settledAtMs[0] ?? nowMs) < sinceMs) this.#settledAtMs.shift()
    const rates = Array.from({ length: RATE_SECONDS }, () => 0)
    for (const atMs of this.#settledAtMs) {
      const slot = RATE_SECONDS - 1 - Math.floor((nowMs - atMs) / 1_000)
      rates[slot] = (rates[slot] ?? 0) + 1
    }
    return rates
  }
}
