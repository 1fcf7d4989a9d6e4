/** Forwards from an outbox until a batch is acknowledged, and then stands still before it is removed. */
import { outboxOf } from '../../src/engine/capability-checks.ts'
import { openEngine } from '../../src/engine/open.ts'
import { openOutbox } from '../../src/outbox/index.ts'
import { systemClock } from '../../src/time/clock.ts'

const [url = '', target = '', batch = ''] = process.argv.slice(2)

const store = await openEngine(url, { clock: systemClock, migrate: true })
const stalling = {
  ...outboxOf(store),
  remove: (_name: string, jobs: readonly { readonly job: { readonly id: string } }[]) => {
    process.stdout.write(`${JSON.stringify(jobs.map(({ job }) => job.id))}\n`)
    return new Promise<void>(() => {})
  },
}
Object.defineProperty(store, 'outbox', { value: stalling })
await openOutbox({ store, target, batch: Number(batch), interval: 300, poll: 10 })
