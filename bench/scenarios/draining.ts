/** Working a store empty and checking what came: shared by every scenario that delivers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Ledger } from '../ledger.ts'
import { inBatches, makePayloads } from '../payload.ts'
import type { Scene } from '../scenario.ts'
import type { Gate } from './gate.ts'

export async function enqueueAll(scene: Scene, count: number): Promise<void> {
  const { contender } = scene
  for (const batch of inBatches(makePayloads(count), contender.bulkSize)) await contender.enqueueBulk(batch)
}

/** The same from the job `from` on, and the jobs enqueued per second after the first batch. */
export async function enqueueTimed({ contender }: Scene, count: number, from = 0): Promise<number> {
  const [first = [], ...others] = inBatches(makePayloads(count, from), contender.bulkSize)
  await contender.enqueueBulk(first)
  const startedMs = performance.now()
  for (const batch of others) await contender.enqueueBulk(batch)
  return ((count - first.length) / (performance.now() - startedMs)) * 1_000
}

/** Errors that a user would have seen, each sentence once with how often it came. */
export function errorFaults(errors: readonly unknown[]): string[] {
  const times = new Map<string, number>()
  for (const error of errors) times.set(String(error), (times.get(String(error)) ?? 0) + 1)
  return [...times].map(([text, count]) => `${count} times an error reached the user: ${text}`)
}

export interface Drained {
  /** When each job arrived, in the order of arrival, in milliseconds of this process's monotonic clock. */
  readonly arrivedMs: readonly number[]
  /** When the gate was opened, on the same clock, where there is one. */
  readonly openedMs: number | undefined
  readonly faults: readonly string[]
}

/** How long a worker has nothing to do before its gate is opened: its commits and its compiler have come to rest by then. */
const REST_MS = 300

/** The jobs in front of a gate, and the gate. */
export interface Gated {
  readonly warmup: number
  readonly gate: Gate
}

/** Works until all `count` jobs from `from` on have arrived, or until none does any more. */
export async function drain(scene: Scene, count: number, from = 0, gated?: Gated): Promise<Drained> {
  const { contender, sizes } = scene
  const ledger = new Ledger(count)
  const arrivedMs: number[] = []
  const errors: unknown[] = []
  const working = await contender.work({
    concurrency: sizes.concurrency,
    onJob: (payload) => {
      ledger.deliver(payload.n - from)
      arrivedMs.push(performance.now())
    },
    onError: (error) => errors.push(error),
  })
  const faults: string[] = []
  let openedMs: number | undefined
  if (gated !== undefined) {
    await ledger.reach(gated.warmup, sizes.stallMs)
    await sleep(REST_MS)
    if (arrivedMs.length !== gated.warmup) faults.push(`${arrivedMs.length} jobs came before the gate was opened`)
    openedMs = await gated.gate.open()
  }
  await ledger.reach(count, sizes.stallMs)
  await working.stop()
  await gated?.gate.end()
  faults.push(...ledger.faults(), ...errorFaults(errors))
  const remaining = await leftOver(scene)
  if (remaining !== 0) faults.push(`${remaining} jobs are still due or running after all was drained`)
  return { arrivedMs, openedMs, faults }
}

/** What is left when nothing more goes: peers may store their last completions after their `stop` has answered. */
async function leftOver({ contender, sizes }: Scene): Promise<number> {
  const untilMs = performance.now() + sizes.stallMs
  for (;;) {
    const remaining = await contender.remaining()
    if (remaining === 0 || performance.now() > untilMs) return remaining
    await sleep(10)
  }
}

/**
 * Jobs per second after the first `warmup` arrivals: starting the worker and compiling its code is over by then, for
 * every contender alike. `fromMs`: since when, default: the last of these arrivals.
 */
export function steadyRate(arrivedMs: readonly number[], warmup: number, fromMs = arrivedMs[warmup - 1]): number {
  const toMs = arrivedMs.at(-1)
  if (fromMs === undefined || toMs === undefined) return 0
  return ((arrivedMs.length - warmup) / (toMs - fromMs)) * 1_000
}

/** Of equally many jobs at each of these rates: all the jobs through all the time. */
export function rateOfAll(rates: readonly number[]): number {
  return rates.length / rates.reduce((sum, rate) => sum + 1 / rate, 0)
}
