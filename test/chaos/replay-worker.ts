/** A busy worker that says ten times a second how many jobs it has completed: `replay-worker.ts <engine url>`. */
import { open } from '../../src/index.ts'
import { busyJob } from './replay-jobs.ts'

const mill = await open(process.argv[2] ?? '')
let completed = 0
mill.events.on('job.settled', () => {
  completed += 1
})
const worker = await mill.work([busyJob.handledBy(() => null)], { concurrency: 50, signals: true })
const telling = setInterval(() => process.send?.({ completed, atMs: performance.now() }), 100)
await worker.stopped
clearInterval(telling)
await mill.close()
process.disconnect?.()
