import { packageVersion } from '../engine/package-info.ts'
import type { AtWork } from '../engine/presence.ts'
import { omitUndefined } from '../job/known-options.ts'
import { LoopDelay } from '../time/loop-delay.ts'
import type { WorkedType } from './active-job.ts'

/** Beats that follow each other sooner, as when a worker begins to stop, tell no rate of their own. */
const RATE_MS_MIN = 1_000

interface Taken {
  readonly ofProcess: Pick<AtWork, 'version' | 'memoryBytes' | 'loopDelayMs'>
  ofType(type: string): Pick<AtWork, 'perSecond'>
}

/** How a worker and its process are, from one beat to the next. */
export class Vitals {
  readonly #loop = new LoopDelay()
  #before: { readonly atMs: number; readonly ended: ReadonlyMap<string, number> } | null = null
  #perSecond: ReadonlyMap<string, number> = new Map()

  take(monotonicMs: number, types: ReadonlyMap<string, Pick<WorkedType, 'completed' | 'failed'>>): Taken {
    const loopDelayMs = this.#loop.take() ?? undefined
    const ofProcess = { version: packageVersion(), memoryBytes: process.memoryUsage.rss() }
    this.#rate(monotonicMs, new Map([...types].map(([type, { completed, failed }]) => [type, completed + failed])))
    return {
      ofProcess: { ...ofProcess, ...omitUndefined({ loopDelayMs }) },
      ofType: (type) => omitUndefined({ perSecond: this.#perSecond.get(type) }),
    }
  }

  #rate(atMs: number, ended: ReadonlyMap<string, number>): void {
    const before = this.#before
    const passedMs = before === null ? 0 : atMs - before.atMs
    if (before !== null && passedMs < RATE_MS_MIN) return
    this.#before = { atMs, ended }
    if (before === null) return
    const perSecond = (type: string, now: number): number =>
      Math.round(((now - (before.ended.get(type) ?? 0)) / passedMs) * 100_000) / 100
    this.#perSecond = new Map([...ended].map(([type, now]) => [type, perSecond(type, now)]))
  }

  close(): void {
    this.#loop.close()
  }
}
