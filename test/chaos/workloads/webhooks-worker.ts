/** A worker process for the chaos of webhooks: `webhooks-worker.ts <engine url> <origin of the receiver>`. */
import { flushCompileCache } from 'node:module'
import { openWebhooks } from '../../../workloads/webhooks/index.ts'

const [engine = '', origin = ''] = process.argv.slice(2)
const webhooks = await openWebhooks({ engine, allow: [origin], limiter: null })
// What a killed process held is taken over soon, and yet a machine that stands still for seconds loses no job: its delivery
// would be sent again, and no kill would be the reason.
const job = { ...webhooks.worker.definition, leaseMs: 8_000, backoff: { kind: 'fixed', delay: '50ms' } } as const
const worker = await webhooks.mill.work([job], { concurrency: 20, poll: '50ms', reap: '500ms', signals: true })
// For the processes after this one, which may be killed before it would be written.
flushCompileCache()
// Its parent was stopped.
process.once('disconnect', () => process.exit())
process.send?.('working')
await worker.stopped
await webhooks.close()
process.disconnect?.()
