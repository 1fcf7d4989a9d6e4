/** The excuses for what is bounded over all workers: how often jobs start, and how many run at once. */
import type { Excuse } from './case.ts'
import { refusesWork } from './needs.ts'

export const limits: Excuse = {
  excuse: ({ capabilities: { limits: kind } }) =>
    kind === 'shared' ? null : 'cannot hold a rate limit over all workers',
  refusal: (stage) => refusesWork(stage, { limit: { max: 1, per: '1s' }, backoff: { kind: 'fixed', delay: 0 } }),
}

export const slots: Excuse = {
  excuse: ({ capabilities: { slots: kind } }) =>
    kind === 'shared' ? null : 'cannot count running jobs over all workers',
  refusal: async (stage) => {
    await refusesWork(stage, { concurrency: { max: 1 }, backoff: { kind: 'fixed', delay: 0 } })
    await refusesWork(stage, { concurrency: { max: 1, by: 'tenant' }, backoff: { kind: 'fixed', delay: 0 } })
  },
}
