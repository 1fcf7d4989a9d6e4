import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import type { BulkOptions, BulkOutcome, BulkProgress } from '../desk/bulk.ts'
import { ClosedError, MillraceError } from '../errors.ts'
import type { Log } from '../job/definition.ts'
import { errorText } from '../job/error-record.ts'
import type { Clock } from '../time/clock.ts'
import type { Operation } from './contract/dead-letters.ts'
import type { DeepReadonly } from './contract/route.ts'
import { HttpError } from './problems.ts'

export type OperationView = DeepReadonly<z.output<typeof Operation>>

/** How many ended operations are remembered. */
const REMEMBERED_MAX = 100
/** More would slow each other and the workers. */
const RUNNING_MAX = 10

interface Kept {
  view: OperationView
  readonly stop: AbortController
  readonly ended: Promise<void>
}

export interface OperationStart {
  readonly kind: OperationView['kind']
  readonly who: string
  readonly reason: string
  run(options: Required<Pick<BulkOptions, 'signal' | 'onProgress'>>): Promise<Ended>
}

type Ended = BulkProgress & Pick<BulkOutcome, 'interrupted'>

/** Bulk operations that go on after their request was answered. They end with this process; what is done stays done. */
export class Operations {
  readonly #clock: Clock
  readonly #log: Log
  readonly #kept = new Map<string, Kept>()
  readonly #listeners = new Set<(operation: OperationView) => void>()
  #isClosed = false

  constructor(admin: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = admin.clock
    this.#log = admin.log
  }

  start({ kind, who, reason, run }: OperationStart): OperationView {
    if (this.#isClosed) throw new ClosedError('this server')
    const running = [...this.#kept.values()].filter(({ view }) => view.status === 'running')
    if (running.length >= RUNNING_MAX) {
      throw new MillraceError(
        'ERR_DESK_REFUSED',
        `${RUNNING_MAX} bulk operations are running; wait for one, or stop it`,
      )
    }
    const id = randomUUID()
    const stop = new AbortController()
    const nothing = { seen: 0, done: 0, refused: {}, total: null }
    const startedAtMs = this.#clock.nowMs()
    const view = { id, kind, who, reason, startedAtMs, status: 'running', endedAtMs: null, error: null } as const
    const ended = this.#follow(id, () =>
      run({ signal: stop.signal, onProgress: (progress) => this.#change(id, { progress: shownProgress(progress) }) }),
    )
    this.#kept.set(id, { view: { ...view, progress: nothing }, stop, ended })
    this.#forgetOldest()
    return this.find(id)
  }

  /** Newest first. */
  list(): readonly OperationView[] {
    return [...this.#kept.values()].map(({ view }) => view).reverse()
  }

  find(id: string): OperationView {
    const kept = this.#kept.get(id)
    if (kept !== undefined) return kept.view
    throw new HttpError(404, 'ERR_ROUTE_UNKNOWN', `this process has no bulk operation '${id}'; see the audit`)
  }

  /** Stops after the current page. Does nothing once it has ended. */
  stop(id: string): OperationView {
    this.#kept.get(id)?.stop.abort()
    return this.find(id)
  }

  subscribe(listener: (operation: OperationView) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Stops all, and resolves when they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { stop } of this.#kept.values()) stop.abort()
    await Promise.all([...this.#kept.values()].map(({ ended }) => ended))
  }

  async #follow(id: string, run: () => Promise<Ended>): Promise<void> {
    // The request is answered first, with the operation in its initial state.
    await Promise.resolve()
    try {
      const outcome = await run()
      const status = outcome.interrupted ? 'stopped' : 'done'
      this.#change(id, { status, endedAtMs: this.#clock.nowMs(), progress: shownProgress(outcome) })
    } catch (error) {
      const text = errorText(error)
      this.#log.error('A bulk operation failed', { operation_id: id, error: text })
      this.#change(id, { status: 'failed', endedAtMs: this.#clock.nowMs(), error: text })
    }
  }

  #change(id: string, change: Partial<OperationView>): void {
    const kept = this.#kept.get(id)
    if (kept === undefined) return
    kept.view = { ...kept.view, ...change }
    for (const listener of this.#listeners) listener(kept.view)
  }

  #forgetOldest(): void {
    for (const [id, { view }] of this.#kept) {
      if (this.#kept.size <= REMEMBERED_MAX) return
      if (view.status !== 'running') this.#kept.delete(id)
    }
  }
}

function shownProgress({ seen, done, refused, total }: BulkProgress): OperationView['progress'] {
  return { seen, done, refused: { ...refused }, total }
}
