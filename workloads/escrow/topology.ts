/** The escrow platform: six topics and the seven workers that read them. */
import type { Backoff, Duration } from '../../src/index.ts'

export interface EscrowTopic {
  readonly topic: string
  /** Where its dead letters go. */
  readonly dlq: string
  /** Its dead letters are CRITICAL and stay until an operator resolves them. */
  readonly isFinancial: boolean
  /** A group may fall this far behind. */
  readonly lag: { readonly warning: number; readonly critical: number }
}

const topic = (name: string, warning: number, critical: number, isFinancial = false): EscrowTopic =>
  Object.freeze({ topic: name, dlq: `${name}.dlq`, isFinancial, lag: Object.freeze({ warning, critical }) })

export const ESCROW_TOPICS: readonly EscrowTopic[] = Object.freeze([
  topic('escrow.commands', 100, 500, true),
  topic('deal.events', 500, 2_000),
  topic('deal.deadlines', 50, 200),
  topic('delivery.commands', 200, 1_000),
  topic('notifications.outbox', 500, 2_000),
  topic('reconciliation.triggers', 10, 50),
])

export interface EscrowPolicy {
  readonly attempts: number
  readonly backoff: Backoff
}

const policy = (...delays: readonly Duration[]): EscrowPolicy =>
  Object.freeze({ attempts: delays.length + 1, backoff: { kind: 'list', delays } as const })

const commands = policy('1s', '5s', '30s', '5m', '30m')
const deadlines = policy('1s', '5s', '30s')
const deliveries = policy('1s', '10s', '60s')
const reconciliation = policy('5s', '60s')

/** For topics that no worker reads. */
export const ESCROW_DEFAULT_POLICY: EscrowPolicy = deadlines

export interface EscrowWorker {
  /** The type in heartbeats, metrics and alerts. Instances are `{worker}-1`, `{worker}-2`. */
  readonly worker: string
  readonly title: string
  readonly topic: string
  /** Three workers read all of `escrow.commands`, so each has its own group. */
  readonly group: string
  readonly dlq: string
  readonly policy: EscrowPolicy
}

const worker = (name: string, title: string, reads: string, retries: EscrowPolicy): EscrowWorker =>
  Object.freeze({ worker: name, title, topic: reads, group: name, dlq: `${reads}.dlq`, policy: retries })

export const ESCROW_WORKERS: readonly EscrowWorker[] = Object.freeze([
  worker('ton-deposit-watcher', 'TON Deposit Watcher', 'escrow.commands', commands),
  worker('payout-executor', 'Payout Executor', 'escrow.commands', commands),
  worker('refund-executor', 'Refund Executor', 'escrow.commands', commands),
  worker('deal-timeout-worker', 'Deal Timeout Worker', 'deal.deadlines', deadlines),
  worker('post-scheduler', 'Post Scheduler', 'delivery.commands', deliveries),
  worker('delivery-verifier', 'Delivery Verifier', 'delivery.commands', deliveries),
  worker('reconciliation-worker', 'Reconciliation Worker', 'reconciliation.triggers', reconciliation),
])

/** The retries of a worker, or the default policy. */
export function escrowPolicy(name: string): EscrowPolicy {
  return ESCROW_WORKERS.find(({ worker }) => worker === name)?.policy ?? ESCROW_DEFAULT_POLICY
}

/** Null for other topics. */
export function escrowLagLimits(name: string): EscrowTopic['lag'] | null {
  return ESCROW_TOPICS.find(({ topic }) => topic === name)?.lag ?? null
}

/** With `.dlq` or without. */
export function isFinancialTopic(name: string): boolean {
  return ESCROW_TOPICS.some(({ topic, dlq, isFinancial }) => isFinancial && (topic === name || dlq === name))
}
