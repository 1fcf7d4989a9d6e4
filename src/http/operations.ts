import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import type { BulkOptions, BulkOutcome, BulkProgress } from '../desk/bulk.ts'
import { ClosedError, MillraceError } from '../errors.ts'
import type { Log } from '../job/definition.ts'
import { errorText } from '../observe/error-text.ts'
import type { Clock } from '../time/clock.ts'
import type { Operation } from './contract/dead-letters.ts'
import type { Shown } from './handlers/shown.ts'
import { Refused } from './problems.ts'

export type OperationView = Shown<z.output<typeof Operation>>

/** Those that have ended are remembered up to this many. */
const REMEMBERED_MAX = 100
/** Each reads and writes the store; more at once would only slow each other and the workers. */
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
  run(options: Required<Pick<BulkOptions, 'signal' | 'onProgress'>>): Promise<BulkOutcome>
}

/** Bulk acts that go on after the answer to whoever began them. They end with this process, and what is done stays done. */
export class Operations {
  readonly #clock: Clock
  readonly #log: Log
  readonly #kept = new Map<string, Kept>()
  readonly #listeners = new Set<(operation: OperationView) => void>()
  #isClosed = false

  constructor(parts: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = parts.clock
    this.#log = parts.log
  }

  start({ kind, who, reason, run }: OperationStart): OperationView {
    if (this.#isClosed) throw new ClosedError('this server')
    const running = [...this.#kept.values()].filter(({ view }) => view.status === 'running')
    if (running.length >= RUNNING_MAX) {
      throw new MillraceError('ERR_DESK_REFUSED', `${RUNNING_MAX} bulk acts run already; wait for one, or stop it`)
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

  /** The newest first. */
  list(): readonly OperationView[] {
    return [...this.#kept.values()].map(({ view }) => view).reverse()
  }

  find(id: string): OperationView {
    const kept = this.#kept.get(id)
    if (kept !== undefined) return kept.view
    throw new Refused(404, 'ERR_ROUTE_UNKNOWN', `no bulk act has the id '${id}' in this process; look at the audit`)
  }

  /** Ends it after the page that it works on. One that has ended is left as it is. */
  stop(id: string): OperationView {
    this.#kept.get(id)?.stop.abort()
    return this.find(id)
  }

  subscribe(listener: (operation: OperationView) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Stops all and resolves when none works any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { stop } of this.#kept.values()) stop.abort()
    await Promise.all([...this.#kept.values()].map(({ ended }) => ended))
  }

  async #follow(id: string, run: () => Promise<BulkOutcome>): Promise<void> {
    // Whoever began it is answered first, with the operation as it stands before any letter was looked at.
    await Promise.resolve()
    try {
      const outcome = await run()
      const status = outcome.interrupted ? 'stopped' : 'done'
      this.#change(id, { status, endedAtMs: this.#clock.nowMs(), progress: shownProgress(outcome) })
    } catch (error) {
      const text = errorText(error)
      this.#log.error('A bulk act failed', { operation_id: id, error: text })
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
