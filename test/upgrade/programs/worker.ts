/** Runs jobs and writes down every start and every answer of the store, until SIGTERM: `worker.ts <orders>`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineJob, open } from 'millrace'
import type { Line } from '../../chaos/history.ts'
import { note, noteError, orders, rolling, tell } from './lines.ts'

type Start = Pick<Line, 'id' | 'key' | 'attempt' | 'token'>
const starts = new Map<string, Start>()

function noteJob(what: Line['what'], { id, key, attempt, token }: Start): void {
  note({ what, id, key, attempt, token, pid: process.pid, atMs: Number(process.hrtime.bigint()) / 1e6 })
}

function noteStart(job: Start): void {
  noteJob('start', job)
  starts.set(`${job.id}/${job.attempt}`, job)
  tell('progress')
}

const work = rolling.handledBy(async ({ payload, job }) => {
  noteStart(job)
  const { deed, ms } = Object(payload)
  await sleep(ms)
  if (deed === 'die' || (deed === 'retry' && job.attempt === 1)) throw new Error(`attempt ${job.attempt}: ${deed}`)
  noteJob('done', job)
  return { token: job.token }
})
const tick = defineJob({
  type: 'tick',
  schedule: { cron: '* * * * * *', missed: 'all' },
  run: ({ job }) => {
    noteStart(job)
    return { token: job.token }
  },
})

const mill = await open(orders.url)
function noteEnd(what: 'accepted' | 'lost', id: string, attempt: number): void {
  const start = starts.get(`${id}/${attempt}`)
  starts.delete(`${id}/${attempt}`)
  if (start !== undefined) noteJob(what, start)
}
mill.events.on('job.settled', ({ job, attempt, outcome }) => {
  if (outcome.kind === 'complete') noteEnd('accepted', job.id, attempt)
})
mill.events.on('lease.lost', ({ job, attempt }) => noteEnd('lost', job.id, attempt))
for (const event of ['worker.error', 'keeper.error'] as const)
  mill.events.on(event, ({ error }) => noteError('trouble', error))
const worker = await mill.work(orders.plain ? [work] : [work, tick], { concurrency: 20, signals: true })
tell('ready')
await worker.stopped
await mill.close()
process.disconnect()
