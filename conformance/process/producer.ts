/** A process that enqueues without end and says so after every acknowledgement. It is meant to be killed. */
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { parseOrders, report } from './protocol.ts'

const orders = parseOrders(process.argv[2])
const mill = await open(orders.url)
const job = defineJob({ type: orders.type })
report({ event: 'ready' })
for (;;) {
  const { id } = await mill.enqueue(job, 'wait-for-go')
  report({ event: 'acknowledged', id })
}
