/**
 * A job with a cron schedule: declared with the job, previewed, and changed at run time.
 *
 *     node examples/schedule/main.ts
 */
import { defineJob, open } from 'millrace'
import { z } from 'zod'

const beat = defineJob({
  type: 'beat',
  payload: z.object({ from: z.string() }),
  // Six fields start with the seconds. A starting worker stores the schedule; changes at run time survive restarts.
  schedule: { cron: '* * * * * *', payload: { from: 'the clock' }, limit: 2 },
  run: ({ payload }) => console.log(`beat from ${payload.from}`),
})

const mill = await open('sqlite:./schedule.db', { jobs: [beat] })
const [first] = await mill.schedules.preview('0 3 * * *', { tz: 'Europe/Berlin' })
console.log(`three in the morning in Berlin is ${new Date(first ?? 0).toISOString().slice(11, 13)} UTC`)

// The worker also runs a keeper, which enqueues the scheduled jobs.
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
