/** Jobs that end in every way there is, for what two processes say of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineJob, NonRetryable } from 'millrace'

const backoff = { kind: 'fixed', delay: '200ms' } as const

export const plain = defineJob({ type: 'plain', run: () => 'done' })

/** Its second attempt succeeds. */
export const flaky = defineJob({
  ...{ type: 'flaky', attempts: 3, backoff },
  run: ({ job }) => (job.attempt < 2 ? Promise.reject(new Error('not yet')) : 'done'),
})

export const worn = defineJob({ type: 'worn', attempts: 2, backoff, run: () => Promise.reject(new Error('never')) })

export const doomed = defineJob({
  type: 'doomed',
  run: () => {
    throw new NonRetryable('no way through')
  },
})

export const brief = defineJob({ type: 'brief', removeOnComplete: true, run: () => 'gone' })

/** Says something, in a flow and by a schedule where an engine has them. */
export const told = defineJob({ type: 'told', run: ({ log }) => log.info('said', { part: 1 }) })

/** Paused where an engine can. */
export const held = defineJob({ type: 'held', run: () => 'done' })

export const long = defineJob({ type: 'long', run: ({ signal }) => sleep(600_000, null, { signal }) })
