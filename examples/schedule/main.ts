/**
 * Shows a job on the clock: declared with the job, looked at before it is trusted, changed while it runs.
 *
 *     node examples/schedule/main.ts
 */
import { defineJob, open } from 'millrace'
import { z } from 'zod'

const beat = defineJob({
  type: 'beat',
  payload: z.object({ from: z.string() }),
  // Six fields begin with the second. A worker that starts stores this; what is changed at run time outlives restarts.
  schedule: { cron: '* * * * * *', payload: { from: 'the clock' }, limit: 2 },
  run: ({ payload }) => console.log(`beat from ${payload.from}`),
})

const mill = await open('sqlite:./schedule.db', { jobs: [beat] })
const [first] = await mill.schedules.preview('0 3 * * *', { tz: 'Europe/Berlin' })
console.log(`three in the morning in Berlin is ${new Date(first ?? 0).toISOString().slice(11, 13)} UTC`)

// The worker runs a keeper beside its handlers: nothing else has to be started.
await mill.work([beat])
const ended = Promise.withResolvers<void>()
let runs = 0
mill.events.on('job.settled', () => {
  runs += 1
  if (runs === 2) ended.resolve()
})
await ended.promise

const again = await mill.schedules.runNow('beat')
await mill.result(again.id)
await mill.schedules.pause('beat')
const stored = await mill.schedules.find('beat')
console.log(`${stored?.runs} runs on the clock, ${stored?.paused ? 'now paused' : 'still running'}`)
await mill.close()
