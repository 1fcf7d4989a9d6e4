/** A process with one worker. It stops on SIGTERM and then ends by itself, if nothing is left that keeps it alive. */
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { type Deed, leave, nextTypeOf, parseOrders, report, told } from './protocol.ts'

const orders = parseOrders(process.argv[2])
const go = told('go')

const job = defineJob({
  type: orders.type,
  lease: orders.leaseMs,
  backoff: { kind: 'fixed', delay: 0 },
  ...(orders.concurrency !== undefined && { concurrency: orders.concurrency }),
  run: async ({ payload, signal, job: { id, attempt } }) => {
    report({ event: 'started', id, attempt })
    signal.addEventListener('abort', () => report({ event: 'aborted', id, code: String(signal.reason?.code) }))
    await act(payload as Deed, signal)
    return `by start ${attempt}`
  },
})

async function act(deed: Deed, signal: AbortSignal): Promise<void> {
  switch (deed) {
    case 'wait-for-go':
      return go
    case 'heed-signal':
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    case 'kill-process':
      process.kill(process.pid, 'SIGKILL')
      return new Promise(() => {})
    case 'enqueue-after-go':
      await go
      await mill.enqueue(defineJob({ type: nextTypeOf(orders.type) }), null)
      return
    default:
      deed satisfies never
  }
}

const mill = await open(orders.url)
mill.events.on('job.settled', ({ job: { id }, outcome }) => report({ event: 'settled', id, kind: outcome.kind }))
mill.events.on('lease.lost', ({ job: { id }, reason }) => report({ event: 'lost', id, reason }))
// Closed while the worker drains, as a program does on a signal: the mill takes jobs of its handlers until that is over.
mill.events.on('worker.stopping', () => {
  void mill.close()
  report({ event: 'stopping' })
})
const worker = await mill.work([job], { signals: true, drain: orders.drainMs, reap: 100, concurrency: 4 })
report({ event: 'ready' })
await worker.stopped
await mill.close()
report({ event: 'stopped' })
leave()
