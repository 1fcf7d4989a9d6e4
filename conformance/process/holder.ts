/** A process that claims one job through the port, waits to be told, and then settles whatever has happened meanwhile. */
import { openEngine } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { leave, parseOrders, report, told } from './protocol.ts'

const orders = parseOrders(process.argv[2])
const go = told('go')
const engine = await openEngine(orders.url, { clock: systemClock, migrate: true })
const types = [{ type: orders.type, leaseMs: orders.leaseMs }]
const consumer = await engine.consume({ types, worker: `holder:${process.pid}:1` })
const [lease] = await consumer.claim({ max: 1, waitMs: 5_000, signal: new AbortController().signal })
if (lease === undefined) throw new Error('there was no job to hold')
const { id } = lease.job
report({ event: 'started', id, attempt: lease.attempt })
await go
const [lost] = await consumer.settle([{ lease, outcome: { kind: 'complete', result: '"late"', durationMs: 1 } }])
report(lost === undefined ? { event: 'settled', id, kind: 'complete' } : { event: 'lost', id, reason: lost.reason })
await engine.close()
leave()
