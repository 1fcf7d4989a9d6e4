import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObservedProcess, WatchedTopics } from '../../src/cli/extensions.ts'
import { deadLettersOf } from '../../src/engine/capability-checks.ts'
import { MemoryPresence } from '../../src/engine/memory-records.ts'
import type { TopicsOfBroker } from '../../src/engine/open.ts'
import { Events } from '../../src/events.ts'
import { open } from '../../src/index.ts'
import { attachMetrics } from '../../src/observe/index.ts'
import { capturingLog, type LogLine } from '../../src/testing/capture.ts'
import { systemClock } from '../../src/time/clock.ts'
import { parseExposition, sampleValue } from '../../test/fixtures/exposition.ts'
import { ALARMS } from './alarms.ts'
import { serving } from './serving.ts'
import { ESCROW_TOPICS, ESCROW_WORKERS } from './topology.ts'

const WATCHED: WatchedTopics = {
  groups: ESCROW_WORKERS.map(({ group }) => group),
  workers: ESCROW_WORKERS.map(({ worker }) => worker),
  topics: ESCROW_TOPICS,
}

/** An engine without records, as Kafka's is. */
function served(given: Partial<ObservedProcess> & { readonly presence?: MemoryPresence }) {
  const { presence, ...parts } = given
  const lines: LogLine[] = []
  const engine = {
    ...{ name: 'kafka', threadUrl: null, ping: async () => {}, counts: async () => ({}) },
    ...(presence && { presence }),
  }
  const mill = { events: new Events(), engine }
  const found: ObservedProcess = {
    mill,
    broker: null,
    watched: null,
    clock: systemClock,
    log: capturingLog(lines),
    ...parts,
  }
  return { lines, served: found }
}

async function rulesOf(of: ObservedProcess): Promise<readonly string[]> {
  const names: string[] = []
  const { startAlerting } = await serving.observe(of)
  await startAlerting((rules) => {
    names.push(...rules.map(({ name }) => name))
    return { current: () => [], evaluate: async () => [], stop: async () => {} }
  }).stop()
  return names
}

test('a preset has all rules where heartbeats are kept, and only those that can be judged where they are not', async () => {
  const kept = served({ watched: WATCHED, presence: new MemoryPresence() })
  assert.deepEqual(await rulesOf(kept.served), Object.keys(ALARMS))
  assert.deepEqual(kept.lines, [])
  const lost = served({ watched: WATCHED })
  assert.deepEqual(
    (await rulesOf(lost.served)).filter((name) => name.startsWith('Worker')),
    [],
  )
  assert.match(lost.lines[0]?.text ?? '', /add --presence/)
})

test('without a preset there are no rules, and without heartbeats and topics only own work is measured', async () => {
  const plain = served({})
  assert.deepEqual(await rulesOf(plain.served), [])
  const { instruments } = await serving.observe(plain.served)
  const metrics = await attachMetrics(plain.served.mill, { instruments })
  const families = [...parseExposition(await metrics.collectMetrics()).keys()].filter((name) =>
    name.startsWith('worker'),
  )
  assert.deepEqual(families.toSorted(), [
    'worker_dlq_archived_total',
    'worker_dlq_messages_total',
    'worker_dlq_replayed_total',
    'worker_retry_count_total',
  ])
  metrics.detach()
  assert.deepEqual(plain.lines, [])
})

test('records that wait for a retry are those of the group with the name of the worker', async () => {
  const presence = new MemoryPresence()
  const beat = {
    type: 'escrow.commands',
    name: 'payout-executor',
    instance: 'payout-executor-1',
    status: 'RUNNING',
  } as const
  await presence.beat([{ ...beat, atMs: Date.now(), lastJobAtMs: null, lag: 3, stoppingSinceMs: null }], 60_000)
  const lag = { group: 'payout-executor', topic: 'escrow.commands', lag: 3, delayed: 2 }
  await using other = await open('memory:')
  const broker: TopicsOfBroker = {
    deadLetters: deadLettersOf(other.engine),
    lags: async () => [lag, { ...lag, group: 'refund-executor', delayed: 7 }],
    pendingByTopic: async () => [],
    dlqTopicOf: (type) => `${type}.dlq`,
    close: async () => {},
  }
  const { served: of } = served({ presence, broker, watched: WATCHED })
  const { instruments, duties } = await serving.observe(of)
  assert.deepEqual(duties, [])
  const metrics = await attachMetrics(of.mill, { instruments })
  await metrics.collectMetrics()
  const labels = { worker: 'payout-executor', worker_instance: 'payout-executor-1' }
  assert.equal(sampleValue(await metrics.collectMetrics(), 'worker_retrying', labels), 2)
  metrics.detach()
})
