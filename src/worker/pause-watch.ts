import { isOfType, type PauseStore, pausesIn, stopName } from '../engine/pauses.ts'
import type { Clock } from '../time/clock.ts'
import type { WorkerParts } from './options.ts'

interface PauseWatchParts {
  readonly clock: Clock
  readonly pauses: Pick<PauseStore, 'list' | 'all' | 'onChange'>
  onChange(paused: ReadonlySet<string>): void
  /** What the worker is asked to stop by; left out where it cannot be. `forget` removes the request. */
  readonly stop?: { readonly name: string; forget(): Promise<unknown> }
  onError(error: unknown): void
}

/** How often to look where the engine does not announce changes. */
const LOOK_MS = 1_000

/**
 * Tracks which types are paused, so that claims need not ask, and whether the worker is asked to stop. While the store
 * cannot be reached, the last known state stays in force: a short outage must not resume a paused type.
 */
export class PauseWatch {
  readonly #parts: PauseWatchParts
  #paused: ReadonlySet<string> = new Set()
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
      const found = await (pauses.all?.() ?? pauses.list())
      this.#update(found.filter(isOfType).map(({ type }) => type))
      if (stop !== undefined && found.some(({ type }) => type === stop.name)) this.#asked.abort('drain')
      this.#isTroubled = false
    } catch (error) {
      if (!this.#isTroubled && !this.#isClosed) this.#parts.onError(error)
      this.#isTroubled = true
    }
  }

  #update(types: readonly string[]): void {
    const isSame = types.length === this.#paused.size && types.every((type) => this.#paused.has(type))
    if (isSame || this.#isClosed) return
    this.#paused = new Set(types)
    this.#parts.onChange(this.#paused)
  }
}

/** Null where the engine cannot pause a type. `startedAtMs`: as the heartbeats of the worker say it; null without any. */
export function watchPauses(
  { engine, events, clock }: WorkerParts,
  { worker, startedAtMs }: { readonly worker: string; readonly startedAtMs: number | null },
  onChange: (paused: ReadonlySet<string>) => void,
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
