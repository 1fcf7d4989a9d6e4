import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dlqTopicOf } from '../../src/engines/kafka/record.ts'
import { defineJob } from '../../src/index.ts'
import { drain, openForTest } from '../../src/testing/index.ts'
import {
  ESCROW_DEFAULT_POLICY,
  ESCROW_TOPICS,
  ESCROW_WORKERS,
  escrowLagLimits,
  escrowPolicy,
  isFinancialTopic,
} from './topology.ts'

// D01
test('seven workers, each with its topic', () => {
  assert.deepEqual(
    ESCROW_WORKERS.map(({ title, topic }) => [title, topic]),
    [
      ['TON Deposit Watcher', 'escrow.commands'],
      ['Payout Executor', 'escrow.commands'],
      ['Refund Executor', 'escrow.commands'],
      ['Deal Timeout Worker', 'deal.deadlines'],
      ['Post Scheduler', 'delivery.commands'],
      ['Delivery Verifier', 'delivery.commands'],
      ['Reconciliation Worker', 'reconciliation.triggers'],
    ],
  )
  const topics = new Set(ESCROW_TOPICS.map(({ topic }) => topic))
  for (const { topic } of ESCROW_WORKERS) assert.ok(topics.has(topic), topic)
})

// X149
test('workers that share a topic are groups of their own', () => {
  assert.equal(new Set(ESCROW_WORKERS.map(({ group }) => group)).size, 7)
})

// D22
test('the dead letters of all six topics are in {topic}.dlq', () => {
  assert.deepEqual(
    ESCROW_TOPICS.map(({ dlq }) => dlq),
    [
      'escrow.commands.dlq',
      'deal.events.dlq',
      'deal.deadlines.dlq',
      'delivery.commands.dlq',
      'notifications.outbox.dlq',
      'reconciliation.triggers.dlq',
    ],
  )
  for (const { topic, dlq } of [...ESCROW_TOPICS, ...ESCROW_WORKERS]) assert.equal(dlq, dlqTopicOf(topic))
})

const MINUTE = 60_000
const TABLE: readonly (readonly [worker: string, dlq: string, delaysMs: readonly number[]])[] = [
  ['ton-deposit-watcher', 'escrow.commands.dlq', [1_000, 5_000, 30_000, 5 * MINUTE, 30 * MINUTE]],
  ['payout-executor', 'escrow.commands.dlq', [1_000, 5_000, 30_000, 5 * MINUTE, 30 * MINUTE]],
  ['refund-executor', 'escrow.commands.dlq', [1_000, 5_000, 30_000, 5 * MINUTE, 30 * MINUTE]],
  ['deal-timeout-worker', 'deal.deadlines.dlq', [1_000, 5_000, 30_000]],
  ['post-scheduler', 'delivery.commands.dlq', [1_000, 10_000, 60_000]],
  ['delivery-verifier', 'delivery.commands.dlq', [1_000, 10_000, 60_000]],
  ['reconciliation-worker', 'reconciliation.triggers.dlq', [5_000, 60_000]],
]

// D23..D30
test('each worker is started N + 1 times with the waits of its row, and then the job is dead', async () => {
  assert.equal(TABLE.length, ESCROW_WORKERS.length)
  for (const [name, dlq, delaysMs] of TABLE) {
    await using t = await openForTest()
    const startsMs: number[] = []
    const job = defineJob({
      type: name,
      ...escrowPolicy(name),
      run: () => {
        startsMs.push(t.clock.nowMs())
        throw new Error('never')
      },
    })
    await t.mill.enqueue(job, null)
    await drain(t.mill, [job])
    for (const delayMs of delaysMs) {
      await t.clock.advance(delayMs - 1)
      await drain(t.mill, [job])
      await t.clock.advance(1)
      await drain(t.mill, [job])
    }
    const waits = startsMs.slice(1).map((ms, index) => ms - (startsMs[index] ?? 0))
    assert.deepEqual(waits, delaysMs, name)
    assert.equal(startsMs.length, delaysMs.length + 1, name)
    assert.equal((await t.mill.counts())[name]?.dead, 1, name)
    assert.equal(ESCROW_WORKERS.find(({ worker }) => worker === name)?.dlq, dlq)
  }
})

// X167
test('five retries take 35.6 min, not the 75 of the sample', () => {
  const [, , delaysMs = []] = TABLE[1] ?? []
  assert.equal(
    delaysMs.reduce((sum, ms) => sum + ms, 0),
    2_136_000,
  )
})

// X161
test('topics without a worker have the default policy', () => {
  assert.deepEqual(ESCROW_DEFAULT_POLICY, { attempts: 4, backoff: { kind: 'list', delays: ['1s', '5s', '30s'] } })
  assert.equal(escrowPolicy('deal.events'), ESCROW_DEFAULT_POLICY)
  assert.equal(escrowPolicy('notifications.outbox'), ESCROW_DEFAULT_POLICY)
})

test('only escrow commands are financial, by either name', () => {
  const financial = ESCROW_TOPICS.filter(({ topic, dlq }) => isFinancialTopic(topic) && isFinancialTopic(dlq))
  assert.deepEqual(
    financial.map(({ topic }) => topic),
    ['escrow.commands'],
  )
  assert.equal(isFinancialTopic('delivery.commands.dlq'), false)
})

test('a topic that is not the platform’s has no limits', () => {
  assert.deepEqual(escrowLagLimits('reconciliation.triggers'), { warning: 10, critical: 50 })
  assert.equal(escrowLagLimits('other'), null)
})
