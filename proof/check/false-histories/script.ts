/** Writes a short history by hand, with the final store that belongs to it. What it tells is sound unless told otherwise. */
import type { Capabilities } from '../../../src/engine/capabilities.ts'
import type { AuditEntry, DeskAction } from '../../../src/engine/dead-letters.ts'
import { CAPABILITIES } from '../../../src/engines/memory/engine.ts'
import type { JobView } from '../../../src/job/job.ts'
import { omitUndefined } from '../../../src/job/known-options.ts'
import type { SharedSlots } from '../../../src/job/slots.ts'
import type { Answer, AskedJob, AskedOutcome, Call, Entry, Fault, GivenLease, Happening } from '../../history/entry.ts'
import { digestOf } from '../../history/recorder.ts'
import type { Facts } from '../check.ts'
import { askedJob, leaseOf, viewOf } from './scripted-job.ts'

/** The wall clock of a script is this much ahead of its monotonic clock. */
const WALL_MS = 1_800_000_000_000
export const LEASE_MS = 1_000
const RESULT = { ok: true }

interface Told {
  readonly by?: string
  /** How long it took until the answer. */
  readonly tookMs?: number
  /** False: the answer was never seen. */
  readonly isAnswered?: boolean
}

interface Held {
  readonly job: AskedJob
  readonly lease: GivenLease
  readonly by: string
}

export class Script {
  readonly #entries: Entry[] = []
  readonly #views = new Map<string, JobView>()
  readonly #jobs = new Map<string, AskedJob>()
  readonly #audit: AuditEntry[] = []
  readonly #held = new Map<string, Held>()
  readonly #consumers = new Set<string>()
  #nowMs = 1_000
  #count = 0
  #isCalm = false

  get nowMs(): number {
    return this.#nowMs
  }

  get wallMs(): number {
    return WALL_MS + Math.floor(this.#nowMs)
  }

  wait(ms: number): this {
    this.#nowMs += ms
    return this
  }

  note(happening: Happening, by = 'referee'): this {
    this.#entries.push({ atMs: this.#nowMs, wallMs: this.wallMs, by, ...happening })
    return this
  }

  call(call: Call, answer: Answer, { by = 'client', tookMs = 1, isAnswered = true }: Told = {}): this {
    this.#count += 1
    const number = this.#count
    // No two calls are asked for at one time.
    this.#nowMs += 0.01
    this.#entries.push({ atMs: this.#nowMs, wallMs: this.wallMs, by, ...call, call: number })
    this.#nowMs += tookMs
    if (isAnswered) this.#entries.push({ atMs: this.#nowMs, wallMs: this.wallMs, by, ...answer, call: number })
    return this
  }

  /** `more.receipt`: what the answer says; without one the job is stored. */
  enqueue(
    id: string,
    fields: Partial<AskedJob> = {},
    more: Told & { receipt?: { id: string; status: 'duplicate' | 'stale' | 'replaced' } } = {},
  ): this {
    return this.batch([[id, fields]], more)
  }

  /** `more.duplicates`: by the ids of jobs that are not stored, the job that each duplicates. */
  batch(
    jobs: readonly (readonly [string, Partial<AskedJob>])[],
    more: Told & {
      receipt?: { id: string; status: 'duplicate' | 'stale' | 'replaced' }
      duplicates?: Readonly<Record<string, string>>
      transaction?: string
      stored?: readonly string[]
    } = {},
  ): this {
    const asked = jobs.map(([id, fields]) => askedJob(id, fields))
    const isStored = more.receipt === undefined || more.receipt.status === 'replaced'
    for (const job of asked) {
      if (!isStored || more.stored?.includes(job.id) === false || more.duplicates?.[job.id] !== undefined) continue
      this.store(job)
    }
    const receipts = asked.map(({ id }) => {
      const first = more.duplicates?.[id]
      if (first !== undefined) return { id: first, status: 'duplicate' } as const
      return more.receipt ?? ({ id, status: 'enqueued' } as const)
    })
    const { transaction } = more
    return this.call(
      { what: 'enqueue', jobs: asked, ...(transaction !== undefined && { transaction }) },
      { what: 'enqueued', receipts },
      more,
    )
  }

  /** A job that was stored otherwise than by `enqueue`. */
  store(job: AskedJob): this {
    this.#jobs.set(job.id, job)
    this.#views.set(job.id, viewOf(job, this.wallMs))
    return this
  }

  /** A claim that is given these jobs, each to be settled under its id. */
  claim(
    ids: readonly string[],
    more: Told & {
      waitMs?: number
      max?: number
      from?: 'ready' | 'expired'
      lease?: Partial<GivenLease>
      limit?: { max: number; perMs: number }
      slots?: SharedSlots
      perType?: Record<string, number>
    } = {},
  ): this {
    const { by = 'worker', waitMs = 0, from = 'ready', max = 10, limit, slots, perType } = more
    if (!this.#consumers.has(by)) {
      this.#consumers.add(by)
      const bounds = omitUndefined({ limit, slots })
      const types = ['plain', 'other'].map((type) => ({ type, leaseMs: LEASE_MS, ...bounds }))
      this.call({ what: 'consume', worker: by, types }, { what: 'consuming' }, { by })
    }
    const leases = ids.map((id): GivenLease => {
      const job = this.#jobs.get(id) ?? askedJob(id, {})
      const view = this.#views.get(id)
      const times = { runAtMs: view?.runAtMs ?? this.wallMs, untilMs: this.wallMs + LEASE_MS }
      const attempt = (view?.attempt ?? 0) + (from === 'ready' ? 1 : 0)
      const lease = leaseOf(job, { attempt, token: `token-${this.#entries.length}`, ...times, ...more.lease })
      if (view !== undefined) this.view(id, { state: 'in_progress', attempt: lease.attempt })
      this.#held.set(id, { job, lease, by })
      return lease
    })
    return this.call(
      { what: 'claim', worker: by, max, waitMs, from, ...(perType !== undefined && { perType }) },
      { what: 'claimed', leases },
      { ...more, by },
    )
  }

  #of(id: string): Held {
    const held = this.#held.get(id)
    if (held === undefined) throw new Error(`${id} is not leased`)
    return held
  }

  /** The lease that was given last, to go on with after another was given. */
  holding(id: string): Held {
    return this.#of(id)
  }

  begin(id: string, held = this.#of(id)): this {
    const { attempt, token } = held.lease
    return this.note({ what: 'begin', id, attempt, token }, held.by)
  }

  end(id: string, held = this.#of(id)): this {
    const { attempt, token } = held.lease
    return this.note({ what: 'end', id, attempt, token, how: 'returned' }, held.by)
  }

  abort(id: string, code: string): this {
    const { lease, by } = this.#of(id)
    return this.note({ what: 'aborted', id, attempt: lease.attempt, token: lease.token, code }, by)
  }

  settle(
    id: string,
    kind: AskedOutcome['kind'],
    more: Told & { held?: Held; delayMs?: number; reason?: string; keep?: number; keepIsOwn?: boolean } = {},
  ): this {
    const { held = this.#of(id), delayMs = 0, reason, keep, keepIsOwn } = more
    const { token } = held.lease
    const outcome: AskedOutcome = {
      id,
      token,
      kind,
      ...(kind === 'complete' ? { digest: digestOf(JSON.stringify(RESULT)) } : {}),
      ...(kind === 'retry' || kind === 'release' ? { delayMs } : {}),
      ...(keep !== undefined && { keep }),
      ...(keepIsOwn !== undefined && { keepIsOwn }),
    }
    const refused = reason === undefined ? [] : [{ id, token, reason }]
    if (reason === undefined) this.#apply(id, kind, delayMs)
    return this.call(
      { what: 'settle', worker: held.by, outcomes: [outcome] },
      { what: 'settled', refused },
      { ...more, by: held.by },
    )
  }

  #apply(id: string, kind: AskedOutcome['kind'], delayMs: number): void {
    const attempt = this.#views.get(id)?.attempt ?? 0
    const runAtMs = this.wallMs + delayMs
    const completedAtMs = this.wallMs
    switch (kind) {
      case 'complete':
        return void this.view(id, { state: 'completed', result: RESULT, completedAtMs })
      case 'dead':
        return void this.view(id, { state: 'dead_letter', completedAtMs })
      case 'retry':
        return void this.view(id, { state: 'queued', runAtMs })
      case 'release':
        return void this.view(id, { state: 'queued', attempt: attempt - 1, ...(delayMs > 0 && { runAtMs }) })
      default:
        kind satisfies never
    }
  }

  /** Claimed, run and settled. */
  run(id: string, kind: AskedOutcome['kind'] = 'complete', more: Parameters<Script['claim']>[1] = {}): this {
    return this.claim([id], more).wait(1).begin(id).wait(1).end(id).settle(id, kind)
  }

  cancel(id: string, isDone = true): this {
    if (isDone) this.view(id, { state: 'cancelled' })
    return this.call({ what: 'cancel', id }, { what: 'cancelled', isDone })
  }

  desk(act: DeskAction, id: string, more: Told & { isDone?: boolean; isAudited?: boolean; edit?: string } = {}): this {
    const { isDone = true, isAudited = isDone, edit, by: who = 'client' } = more
    const by = { who, reason: 'a reason' }
    if (isDone) {
      if (act === 'replay') this.view(id, { state: 'queued', attempt: 0 })
      if (act === 'discard') this.view(id, { state: 'discarded' })
      if (act === 'undo') this.view(id, { state: 'dead_letter' })
      if (act === 'purge') this.view(id, null)
    }
    if (isAudited) this.audit(act, id, by)
    return this.call(
      { what: 'desk', act, ids: [id], ...by, ...(edit !== undefined && { edit }) },
      { what: 'desk-done', done: [isDone] },
      more,
    )
  }

  audit(
    action: DeskAction,
    jobId: string,
    { who, reason }: { who: string; reason: string },
    before: Record<string, unknown> = {},
  ): this {
    const about = { jobId, type: this.#jobs.get(jobId)?.type ?? 'plain', subject: null, before, after: null }
    this.#audit.push({ seq: this.#audit.length + 1, atMs: this.wallMs, who, reason, action, ...about })
    return this
  }

  fault(fields: Partial<Fault>): this {
    this.#count += 1
    return this.note({ what: 'fault', fault: this.#count, nemesis: 'test', target: null, ...fields })
  }

  heal(): this {
    for (const entry of this.#entries) if (entry.what === 'fault') this.note({ what: 'healed', fault: entry.fault })
    return this
  }

  /** How the job is at the end; null when it is gone. */
  view(id: string, change: Partial<JobView> | null): this {
    const view = this.#views.get(id)
    if (change === null) this.#views.delete(id)
    else if (view !== undefined) this.#views.set(id, { ...view, ...change })
    return this
  }

  /** All faults are healed. */
  calm(boundMs = 60_000): this {
    this.#isCalm = true
    return this.note({ what: 'calm', boundMs })
  }

  facts(capabilities: Partial<Capabilities> = {}, letters?: readonly string[]): Facts {
    if (!this.#isCalm) this.calm().wait(1).note({ what: 'finished' })
    const dead = [...this.#views.values()].filter(({ state }) => state === 'dead_letter').map(({ id }) => id)
    const canFind = capabilities.settle !== 'watermark'
    return {
      history: this.#entries.toSorted((a, b) => a.atMs - b.atMs),
      final: {
        jobs: canFind ? this.#views : new Map(),
        canFind,
        letters: new Set(letters ?? dead),
        audit: this.#audit,
      },
      capabilities: { ...CAPABILITIES, ...capabilities },
    }
  }
}
