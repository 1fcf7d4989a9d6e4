/**
 * A process that claims a rate-limited type without end, and stops itself when it is told: between two turns of its event
 * loop, so that whatever it waits for at that moment stays unanswered.
 */
import { openEngine } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { parseOrders, report, told } from './protocol.ts'

const orders = parseOrders(process.argv[2])
const engine = await openEngine(orders.url, { clock: systemClock, migrate: true })
const types = [{ type: orders.type, leaseMs: orders.leaseMs, limit: { max: 1_000_000, perMs: 1_000 } }]
const consumer = await engine.consume({ types, worker: `claimer:${process.pid}:1` })

async function freezeWhenTold(): Promise<void> {
  for (;;) {
    await told('go')
    report({ event: 'freezing' }, () => process.kill(process.pid, 'SIGSTOP'))
  }
}

void freezeWhenTold()
report({ event: 'ready' })
for (;;) {
  const leases = await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
  const outcome = { kind: 'complete', result: 'null', durationMs: 1 } as const
  await consumer.settle(leases.map((lease) => ({ lease, outcome })))
  // An engine that answers at once leaves the event loop no turn in which to hear.
  await new Promise(setImmediate)
}
