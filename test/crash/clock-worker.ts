/** A worker for clock.test.ts: it tells its parent what happens, and its slow job ends when the parent says so. */
import { defineJob, open } from 'millrace'

const [url = '', types = ''] = process.argv.slice(2)
const finish = Promise.withResolvers<void>()
process.on('message', () => finish.resolve())

const jobs = [
  defineJob({ type: 'slow', lease: '3s', attempts: 2, run: () => finish.promise }),
  defineJob({ type: 'limited', limit: { max: 1, per: '300ms' }, run: () => {} }),
  defineJob({ type: 'ticking', schedule: { cron: '* * * * * *', overlap: 'allow' }, run: () => {} }),
].filter(({ type }) => types.split(',').includes(type))

const tell = (event: string, type = ''): void => void process.send?.({ event, type })
const mill = await open(url)
mill.events.on('clock.stepped', () => tell('stepped'))
mill.events.on('reaper.pass', () => tell('pass'))
mill.events.on('job.started', ({ job }) => tell('started', job.type))
mill.events.on('job.settled', ({ job, outcome }) => tell(outcome.kind, job.type))
mill.events.on('lease.lost', ({ job }) => tell('lost', job.type))
mill.events.on('lease.reaped', ({ job }) => tell('reaped', job.type))
await mill.work(jobs, { reap: '300ms', poll: '200ms' })
tell('ready')
