/** Workers of a user of the framework, as `millrace start framework-workers.ts --preset framework` loads them. */
import { defineJob } from 'millrace'
import { BaseWorker, specOf, type WorkerJob } from 'millrace/workloads/framework'

class SessionCleanup extends BaseWorker<{ readonly maxAge: number }, string> {
  constructor() {
    super('session-cleanup')
  }

  process({ maxAge }: { readonly maxAge: number }, job: WorkerJob) {
    if (job.attempt === 1 && maxAge === 1) throw new Error('the store is busy')
    return `nothing older than ${maxAge} ms`
  }
}

export const sessionCleanup = new SessionCleanup().definition

/** Its first start never ends. The lease is short, so that a lost worker is noticed soon. */
export const dataDeletion = defineJob({
  ...specOf('data-deletion'),
  lease: '2s',
  run: ({ job }) => (job.attempt === 1 ? new Promise<never>(() => {}) : `deleted at attempt ${job.attempt}`),
})
