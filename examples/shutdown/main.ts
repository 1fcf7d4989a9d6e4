/**
 * A worker in your own process that stops cleanly. On SIGTERM or SIGINT it takes no more jobs and waits up to `drain` for
 * running ones. Then their signal aborts, and they go back to the queue without using an attempt.
 *
 *     node examples/shutdown/main.ts     # and Ctrl-C
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineJob, open } from 'millrace'

const short = defineJob({
  type: 'short',
  async run() {
    await sleep(300)
    return 'done in time'
  },
})

const long = defineJob({
  type: 'long',
  // A handler that passes its signal on ends at once. The job of one that ignores it is given back anyway.
  run: ({ signal }) => sleep(3_600_000, null, { signal }),
})

const mill = await open('sqlite:./shutdown.db')
mill.events.on('job.started', ({ job }) => console.log(`started ${job.type}`))
mill.events.on('job.settled', ({ job, outcome }) => console.log(`${outcome.kind} ${job.type}`))

// Keep `drain` below the time that your supervisor waits before it kills the process: see examples/deploy.
const worker = await mill.work([short, long], { drain: '5s', signals: true })
await mill.enqueue(long)
await mill.enqueue(short)

await worker.stopped
await mill.close()
console.log('stopped')
