import type { Actor } from '../engine/dead-letters.ts'
import type { Controls, Engine, Inspector } from '../engine/engine.ts'
import type { Finished, Retention, RetentionRule } from '../engine/retention.ts'
import { UnsupportedError } from '../errors.ts'
import type { JobState } from '../job/states.ts'
import type { Clock } from '../time/clock.ts'
import type { BulkOptions, BulkProgress } from './bulk.ts'

export interface EmptyingType {
  readonly engine: Engine
  readonly clock: Clock
  readonly type: string
  readonly by: Actor
  /** How many jobs there were to begin with, for the progress. */
  readonly total: number
}

/** What `drainType` and `obliterateType` report. They answer the same when they were stopped. */
export interface Emptied extends BulkProgress {
  readonly interrupted: boolean
}

type Watched = Pick<BulkOptions, 'signal' | 'onProgress'>

/** Large enough to be quick, small enough not to delay workers. */
const PAGE_MAX = 100
/** Jobs that one step of a sweep looks at. */
const SWEEP_MAX = 1_000
/** Pauses this many times as long as it worked, to leave the store to workers. */
const REST = 3

export const CANNOT_EMPTY = 'cannot remove the jobs of a type; delete its topic, or shorten how long it keeps records'

interface Parts {
  readonly inspector: Inspector
  readonly controls: Controls
  readonly retention: Retention
}

/** Null where an engine cannot do all of it. */
export function emptyingParts({ inspector, controls, retention }: Engine): Parts | null {
  if (inspector === undefined || controls === undefined || retention === undefined) return null
  return { inspector, controls, retention }
}

/** Cancels every queued job of a type that is there when it begins: ready, delayed and waiting ones. Those that run go on. */
export async function drainType(emptying: EmptyingType, watched: Watched): Promise<Emptied> {
  const pass = new Pass(emptying, watched)
  await pass.cancelAll('queued', true)
  return pass.emptied()
}

/**
 * Cancels every job of a type, also while it runs, and removes what is over with its history. Dead letters of a critical
 * type stay: only the desk removes those. A job that one of another type waits for stays until that one is over.
 */
export async function obliterateType(
  emptying: EmptyingType & { readonly isCritical: boolean },
  watched: Watched,
): Promise<Emptied> {
  const pass = new Pass(emptying, watched)
  await pass.cancelAll('queued', false)
  await pass.cancelAll('in_progress', false)
  await pass.removeFinished(emptying.isCritical ? ['completed', 'ended'] : ['completed', 'ended', 'dead'])
  return pass.emptied()
}

class Pass {
  readonly #emptying: EmptyingType
  readonly #watched: Watched
  readonly #parts: Parts
  #seen = 0
  #done = 0
  #changed = 0

  constructor(emptying: EmptyingType, watched: Watched) {
    const parts = emptyingParts(emptying.engine)
    if (parts === null) throw new UnsupportedError({ engine: emptying.engine.name, limit: CANNOT_EMPTY })
    this.#emptying = emptying
    this.#watched = watched
    this.#parts = parts
  }

  get #isStopped(): boolean {
    return this.#watched.signal?.aborted ?? false
  }

  /**
   * From the newest to the oldest, so that jobs which are enqueued meanwhile are left alone. Not counted where they are
   * removed afterwards.
   */
  async cancelAll(state: Extract<JobState, 'queued' | 'in_progress'>, isCounted: boolean): Promise<void> {
    const { inspector, controls } = this.#parts
    const { type, by } = this.#emptying
    let before: string | undefined
    while (!this.#isStopped) {
      const isMore = await this.#step(async () => {
        const filter = { type, state, limit: PAGE_MAX, ...(before !== undefined && { before }) }
        const jobs = await inspector.list(filter)
        const answers = await Promise.all(jobs.map(({ id }) => controls.cancel(id, by)))
        if (isCounted) {
          this.#seen += jobs.length
          this.#done += answers.filter(Boolean).length
          this.#changed += answers.filter((isCancelled) => !isCancelled).length
        }
        before = jobs.at(-1)?.id
        return jobs.length === PAGE_MAX
      })
      if (!isMore) return
    }
  }

  async removeFinished(whats: readonly Finished[]): Promise<void> {
    const { type, by, clock } = this.#emptying
    // All that is over by now, by whatever clock.
    const beforeMs = clock.nowMs() + 86_400_000
    const rules = whats.map((what): RetentionRule => ({ what, type, beforeMs }))
    let from: string | null = null
    while (!this.#isStopped) {
      from = await this.#step(async () => {
        const { removed, next } = await this.#parts.retention.sweep(rules, { from, max: SWEEP_MAX, by })
        this.#seen += removed
        this.#done += removed
        return next
      })
      if (from === null) return
    }
  }

  /** One bounded step, and a rest after it. */
  async #step<Answer>(run: () => Promise<Answer>): Promise<Answer> {
    const { clock } = this.#emptying
    const beganMs = clock.monotonicMs()
    const answer = await run()
    this.#watched.onProgress?.(this.#progress())
    const restMs = (clock.monotonicMs() - beganMs) * REST
    if (restMs > 0) await clock.sleep(restMs, this.#watched.signal)
    return answer
  }

  #progress(): BulkProgress {
    const { total } = this.#emptying
    const refused = this.#changed === 0 ? {} : { changed: this.#changed }
    return { seen: this.#seen, done: this.#done, refused, total: Math.max(total, this.#seen) }
  }

  emptied(): Emptied {
    return { ...this.#progress(), interrupted: this.#isStopped }
  }
}
