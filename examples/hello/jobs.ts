/** Producers and workers import the same definitions. `millrace work jobs.ts` runs them too. */
import { defineJob } from 'millrace'
import { z } from 'zod'

export const greet = defineJob({
  type: 'greet',
  payload: z.object({ name: z.string().min(1) }),
  attempts: 3,
  run: ({ payload }) => `Hello, ${payload.name}`,
})
