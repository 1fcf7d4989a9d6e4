/** A contender without a store that can be told to lie, to prove that the harness does not believe it. */
import { appendFileSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Contender, ContenderEntry, Working, WorkRequest } from '../contender.ts'
import { makePayload, type Payload } from '../payload.ts'

export const LIES = ['honest', 'loses', 'doubles', 'invents', 'leaves', 'throws', 'hangs', 'wavers'] as const
export type Lie = (typeof LIES)[number]

/** The job that the lie is about. */
const VICTIM = 123

/** Where a contender that wavers counts its processes; `starter` is the one that measures it. */
export const waveringFile = (starter: number): string => join(tmpdir(), `millrace-wavers-${starter}`)

export function lyingEntry(lie: Lie): ContenderEntry {
  return {
    name: `lying-${lie}`,
    title: `A contender that ${lie}`,
    family: 'sqlite',
    notes: '',
    storage: `lying-${lie}`,
    excused: {},
    module: import.meta.url,
  }
}

class LyingContender implements Contender {
  readonly bulkSize = 100
  readonly #lie: string
  readonly #jobs: Payload[] = []

  constructor(lie: string) {
    this.#lie = lie
  }

  async setup(): Promise<void> {}

  async enqueueOne(payload: Payload): Promise<void> {
    this.#jobs.push(payload)
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    this.#jobs.push(...payloads)
  }

  async work(request: WorkRequest): Promise<Working> {
    if (this.#lie === 'throws') throw new Error('the worker would not start')
    // Every second process is slow.
    if (this.#lie === 'wavers') appendFileSync(waveringFile(process.ppid), 'x')
    const isSlow = this.#lie === 'wavers' && readFileSync(waveringFile(process.ppid)).length % 2 === 0
    for (const job of this.#jobs.splice(0)) {
      if (isSlow) await sleep(2)
      if (this.#lie === 'loses' && job.n === VICTIM) continue
      await request.onJob(job)
      if (this.#lie === 'doubles' && job.n === VICTIM) await request.onJob(job)
    }
    if (this.#lie === 'invents') await request.onJob(makePayload(1_000_000))
    return { stop: async () => {} }
  }

  async remaining(): Promise<number> {
    return this.#lie === 'leaves' ? 1 : 0
  }

  async teardown(): Promise<void> {
    if (this.#lie === 'hangs') setInterval(() => {}, 60_000)
  }
}

export function create(entry: ContenderEntry): Contender {
  return new LyingContender(entry.name.replace('lying-', ''))
}
