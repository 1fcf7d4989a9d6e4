/** What can be done: producers and workers import the same definitions. Run it with `millrace work jobs.ts`, too. */
import { defineJob } from 'millrace'
import { z } from 'zod'

export const greet = defineJob({
  type: 'greet',
  payload: z.object({ name: z.string().min(1) }),
  attempts: 3,
  run: ({ payload }) => `Hello, ${payload.name}`,
})
