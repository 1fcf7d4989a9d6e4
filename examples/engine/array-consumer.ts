import { randomUUID } from 'node:crypto'
import type { ClaimRequest, Consumer, Lease, Lost, Outcome, Settlement, Subscription } from 'millrace/engine'
import type { ArrayEngine, Row } from './array-engine.ts'

/** No event tells that a job is due, so a waiting claim looks this often. */
const LOOK_MS = 10
/** The lease of a reaper. */
const REAPER_LEASE_MS = 60_000

export class ArrayConsumer implements Consumer {
  readonly #engine: ArrayEngine
  readonly #subscription: Subscription
  readonly #closing = new AbortController()

  constructor(engine: ArrayEngine, subscription: Subscription) {
    this.#engine = engine
    this.#subscription = subscription
  }

  async claim(request: ClaimRequest): Promise<readonly Lease[]> {
    const { clock, closing } = this.#engine
    const stop = AbortSignal.any([request.signal, this.#closing.signal, closing])
    const untilMs = clock.monotonicMs() + request.waitMs
    while (!stop.aborted) {
      const { change } = this.#engine.store()
      const leases = this.#take(request)
      const leftMs = untilMs - clock.monotonicMs()
      if (leases.length > 0 || leftMs <= 0) return leases
      await clock.sleep(Math.min(leftMs, LOOK_MS), AbortSignal.any([stop, change]))
    }
    return []
  }

  #take({ max, from = 'ready', perType = {} }: ClaimRequest): readonly Lease[] {
    const nowMs = this.#engine.clock.monotonicMs()
    const room = new Map(Object.entries(perType))
    const leases: Lease[] = []
    for (const row of this.#engine.store().rows) {
      const leaseMs = this.#leaseMs(row.job.type, from)
      const left = Math.min(room.get(row.job.type) ?? max, max - leases.length)
      if (leaseMs === null || left < 1 || !isFree(row, from, nowMs)) continue
      room.set(row.job.type, left - 1)
      // A dead holder's start was counted when it claimed.
      if (from === 'ready') row.attempt += 1
      Object.assign(row, { state: 'inProgress', token: randomUUID(), leaseUntilMs: nowMs + leaseMs })
      const expiresAtMs = this.#engine.clock.nowMs() + leaseMs
      leases.push({ job: row.job, attempt: row.attempt, token: row.token, expiresAtMs })
    }
    return leases
  }

  /** Null: not for this consumer. A reaper takes only expired jobs, of every type. */
  #leaseMs(type: string, from: 'ready' | 'expired'): number | null {
    const { types } = this.#subscription
    if (types === 'every') return from === 'expired' ? REAPER_LEASE_MS : null
    return types.find((subscribed) => subscribed.type === type)?.leaseMs ?? null
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]> {
    const nowMs = this.#engine.clock.monotonicMs()
    return leases.flatMap((lease) => {
      const row = this.#held(lease)
      if (row === undefined) return [{ lease, reason: 'expired' as const }]
      row.leaseUntilMs = nowMs + leaseMs
      return []
    })
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Lost[]> {
    const nowMs = this.#engine.clock.monotonicMs()
    const lost = settlements.flatMap(({ lease, outcome }) => {
      const row = this.#held(lease)
      if (row === undefined) return [{ lease, reason: 'expired' as const }]
      apply(row, outcome, nowMs)
      return []
    })
    this.#engine.store().changed()
    return lost
  }

  async report(lease: Lease): Promise<boolean> {
    return this.#held(lease) !== undefined
  }

  listen(): () => void {
    return () => {}
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  /** The fence: the token must match, and the lease must not have ended. */
  #held({ job, token }: Lease): Row | undefined {
    const nowMs = this.#engine.clock.monotonicMs()
    const row = this.#engine.store().rows.find((candidate) => candidate.job.id === job.id)
    return row?.state === 'inProgress' && row.token === token && row.leaseUntilMs > nowMs ? row : undefined
  }
}

function isFree(row: Row, from: 'ready' | 'expired', nowMs: number): boolean {
  return from === 'ready'
    ? row.state === 'queued' && row.dueMs <= nowMs
    : row.state === 'inProgress' && row.leaseUntilMs <= nowMs
}

/** The core has decided the outcome; the engine only applies it. */
function apply(row: Row, outcome: Outcome, nowMs: number): void {
  switch (outcome.kind) {
    case 'complete':
      row.state = 'completed'
      return
    case 'dead':
      row.state = 'dead'
      return
    case 'retry':
    case 'release':
      row.state = 'queued'
      row.dueMs = nowMs + outcome.delayMs
      if (outcome.kind === 'release') row.attempt -= 1
      return
    default:
      outcome satisfies never
  }
}
