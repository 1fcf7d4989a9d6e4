import { z } from 'zod'
import { defineJob } from '../../src/index.ts'

/** Short leases, so that a run of a minute sees many recoveries; attempts enough that being killed is rarely the end. */
export const chaosJob = defineJob({
  type: 'chaos',
  payload: z.object({ ms: z.number() }),
  attempts: 20,
  lease: '2s',
  backoff: { kind: 'fixed', delay: '50ms' },
})
