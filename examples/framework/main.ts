/**
 * The worker framework: a worker as a class next to one by `defineJob`, with tenants, counters and alerts. One mill runs both
 * styles.
 *
 *     node examples/framework/main.ts
 */
import { currentTenant, defineJob, open } from 'millrace'
import {
  BaseWorker,
  JOB_TYPES,
  JobDispatcher,
  type Metrics,
  specOf,
  type WorkerJob,
} from 'millrace/workloads/framework'
import { z } from 'zod'

const Sync = z.object({ channel: z.string() })
type Sync = z.infer<typeof Sync>

const counts = new Map<string, number>()
const metrics: Metrics = {
  increment: (name) => counts.set(name, (counts.get(name) ?? 0) + 1),
  timing: () => {},
}

class SlackSync extends BaseWorker<Sync, { readonly read: number }> {
  constructor() {
    const limiter = { max: 10, duration: 1_000 }
    super(JOB_TYPES.SLACK_SYNC, { concurrency: 5, limiter, payload: Sync }, { metrics })
  }

  async process({ channel }: Sync, job: WorkerJob<Sync>) {
    await job.updateProgress({ phase: 'reading', percent: 50 })
    if (channel === 'gone') throw Object.assign(new Error('no such channel'), { status: 404 })
    return { read: await readMessages(channel) }
  }

  override onFailed(_job: unknown, error: Error, final: boolean) {
    console.log(`${final ? 'given up' : 'to be retried'}: ${error.message}`)
  }
}

/** The tenant is known at any call depth. */
async function readMessages(channel: string): Promise<number> {
  console.log(`reading ${channel} for ${currentTenant()?.orgId}`)
  return channel.length
}

/** The same as a function. The priority, attempts, backoff and timeout come from the registry of types. */
const checkQuotas = defineJob({
  ...specOf(JOB_TYPES.QUOTA_CHECK),
  run: () => ({ over: [] }),
})

const mill = await open('sqlite:./framework.db', {
  alerter: { send: ({ severityLabel, title }) => console.log(`${severityLabel}: ${title}`) },
})
const workers = [new SlackSync().definition, checkQuotas]
const dispatcher = new JobDispatcher(mill, workers)

const tenant = { orgId: 'acme' }
const sync = { type: JOB_TYPES.SLACK_SYNC, tenant } as const
const general = await dispatcher.dispatch({ ...sync, data: { channel: 'general' }, options: { priority: 15 } })
const gone = await dispatcher.dispatch({ ...sync, data: { channel: 'gone' }, options: { priority: 5 } })
const quotas = await dispatcher.dispatch({ type: JOB_TYPES.QUOTA_CHECK, data: {} })
await dispatcher.dispatch({ type: JOB_TYPES.DATA_EXPORT, data: {} }).catch((error) => console.log(error.code))

await mill.work(workers, { concurrency: 1 })
const read = await mill.result(general)
const verdict = await mill.result(gone).catch((error) => error.code)
const quota = await mill.result(quotas)
await mill.close() // hooks, counters and alerts have run by then

console.log(read, verdict, quota)
for (const [name, count] of counts) console.log(name, count)
