import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evaluateAlarms } from './alarms.ts'
import { escrowLagLimits, isFinancialTopic } from './topology.ts'

/** What an operator hears about a topic that is so far behind. */
function heard(topic: string, lag: number): string | null {
  const reading = {
    atMs: 0,
    workers: { ok: true, value: [] },
    lags: { ok: true, value: [{ group: 'g', topic, lag }] },
    pending: { ok: true, value: [] },
  } as const
  const [alarm] = evaluateAlarms(reading, { lagLimits: escrowLagLimits, isFinancial: isFinancialTopic })
  return alarm?.severity ?? null
}

const TABLE: readonly (readonly [topic: string, warning: number, critical: number])[] = [
  // D14
  ['escrow.commands', 100, 500],
  // D15
  ['deal.events', 500, 2_000],
  // D16
  ['deal.deadlines', 50, 200],
  // D17
  ['delivery.commands', 200, 1_000],
  // D18
  ['notifications.outbox', 500, 2_000],
  // D19
  ['reconciliation.triggers', 10, 50],
]

// D12 D14..D19
test('each topic has its limits, and they are crossed above them', () => {
  for (const [topic, warning, critical] of TABLE) {
    assert.equal(heard(topic, warning), null, topic)
    assert.equal(heard(topic, warning + 1), 'warning', topic)
    assert.equal(heard(topic, critical), 'warning', topic)
    assert.equal(heard(topic, critical + 1), 'critical', topic)
  }
})
