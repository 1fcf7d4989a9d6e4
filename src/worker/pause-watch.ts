import { limitsOf, overrideOf, type TypeLimits } from '../engine/limits.ts'
import { isOfType, type PauseStore, pausesIn, stopName } from '../engine/pauses.ts'
import type { Clock } from '../time/clock.ts'
import type { WorkerParts } from './options.ts'

/** What all workers are told. */
export interface TypeOrders {
  readonly paused: ReadonlySet<string>
  /** Limits that hold instead of the definitions', by type. */
  readonly limits: ReadonlyMap<string, TypeLimits>
}

interface PauseWatchParts {
  readonly clock: Clock
  readonly pauses: Pick<PauseStore, 'list' | 'all' | 'onChange'>
  onChange(orders: TypeOrders): void
  /** What the worker is asked to stop by; left out where it cannot be. `forget` removes the request. */
  readonly stop?: { readonly name: string; forget(): Promise<unknown> }
  onError(error: unknown): void
}

/** How often to look where the engine does not announce changes. */
const LOOK_MS = 1_000

/**
 * Tracks which types are paused and whose limits were changed, so that claims need not ask, and whether the worker is
 * asked to stop. While the store cannot be reached, the last known state stays in force: a short outage must not resume a
 * paused type.
 */
export class PauseWatch {
  readonly #parts: PauseWatchParts
  /** As text, to notice a change. */
  #known = textOf({ paused: new Set(), limits: new Map() })
  #cancel: () => void = () => {}
  #isTroubled = false
  #isClosed = false
  readonly #asked = new AbortController()
  /** Aborts when the worker is asked to stop, within a second as a pause is obeyed. */
  readonly asked: AbortSignal = this.#asked.signal

  constructor(parts: PauseWatchParts) {
    this.#parts = parts
  }

  /** Resolves after the first look, so that no job of a paused type is claimed before. */
  async start(): Promise<void> {
    const { pauses } = this.#parts
    await this.#look()
    if (this.#isClosed) return
    if (pauses.onChange !== undefined) this.#cancel = pauses.onChange(() => void this.#look())
    else this.#lookLater()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  /** Removes the request that the worker has obeyed. Never rejects: one that stays concerns nobody any more. */
  async obeyed(): Promise<void> {
    if (this.asked.aborted) await this.#parts.stop?.forget().catch(this.#parts.onError)
  }

  #lookLater(): void {
    this.#cancel = this.#parts.clock.after(LOOK_MS, () => {
      void this.#look().then(() => {
        if (!this.#isClosed) this.#lookLater()
      })
    })
  }

  /** Never rejects. An outage is reported once, not at every look. */
  async #look(): Promise<void> {
    try {
      const { pauses, stop } = this.#parts
      const all = await pauses.all?.()
      const found = all ?? (await pauses.list())
      const overrides = (all ?? []).flatMap((told) => overrideOf(told) ?? [])
      this.#update({
        paused: new Set(found.filter(isOfType).map(({ type }) => type)),
        limits: new Map(overrides.map(({ type, ...limits }) => [type, limitsOf(limits)])),
      })
      if (stop !== undefined && found.some(({ type }) => type === stop.name)) this.#asked.abort('drain')
      this.#isTroubled = false
    } catch (error) {
      if (!this.#isTroubled && !this.#isClosed) this.#parts.onError(error)
      this.#isTroubled = true
    }
  }

  #update(orders: TypeOrders): void {
    const text = textOf(orders)
    if (text === this.#known || this.#isClosed) return
    this.#known = text
    this.#parts.onChange(orders)
  }
}

function textOf({ paused, limits }: TypeOrders): string {
  return JSON.stringify([[...paused], [...limits]])
}

/** Null where the engine cannot pause a type. `startedAtMs`: as the heartbeats of the worker say it; null without any. */
export function watchPauses(
  { engine, events, clock }: WorkerParts,
  { worker, startedAtMs }: { readonly worker: string; readonly startedAtMs: number | null },
  onChange: (orders: TypeOrders) => void,
): PauseWatch | null {
  const pauses = pausesIn(engine)
  if (pauses === undefined) return null
  const name = startedAtMs === null ? null : stopName(worker, startedAtMs)
  return new PauseWatch({
    ...{ clock, pauses, onChange },
    ...(name !== null && { stop: { name, forget: () => pauses.resume(name) } }),
    onError: (error) => events.emit('worker.error', { worker, during: 'pauses', error }),
  })
}
