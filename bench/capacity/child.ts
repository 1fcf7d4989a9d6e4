/** A process that enqueues or drains for `measure.ts`, and says on standard output what it took. */
import { defineJob, open } from '../../src/index.ts'
import { inBatches, makePayloads, sharedNowMs } from '../payload.ts'

export interface Assignment {
  readonly act: 'enqueue' | 'drain'
  readonly url: string
  readonly jobs: number
  readonly types: number
  /** Whether each job has a key of its own. */
  readonly keyed: boolean
}

export interface Taken {
  /** Of the first and the last job, on the clock that all processes of the machine share. */
  readonly firstMs: number
  readonly lastMs: number
  readonly cpuUs: number
  readonly jobs: number
}

const TOGETHER = 100
const CONCURRENCY = 50
const QUIET_MS = 3_000

const { act, url, jobs, types, keyed }: Assignment = JSON.parse(process.argv[2] ?? '{}')
const definitions = Array.from({ length: types }, (_, index) => defineJob({ type: `t${index}` }))
const mill = await open(url)
let [firstMs, lastMs] = [0, sharedNowMs()]

/** So many calls at a time, as a busy web server makes them. */
async function enqueue(): Promise<number> {
  for (const payloads of inBatches(makePayloads(jobs), TOGETHER)) {
    await Promise.all(
      payloads.map((payload) => {
        const job = definitions[payload.n % types] ?? 't0'
        return mill.enqueue(job, payload, keyed ? { key: `k${payload.n}` } : {})
      }),
    )
  }
  return jobs
}

/** The share of this process: it ends when nothing has come for a while, which is not counted. */
async function drain(): Promise<number> {
  let done = 0
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
  const run = (): void => {
    lastMs = sharedNowMs()
    if (done === 0) firstMs = lastMs
    done += 1
    if (done >= jobs) finish()
  }
  const worker = await mill.work(
    definitions.map((job) => job.handledBy(run)),
    { concurrency: CONCURRENCY },
  )
  const quiet = setInterval(() => {
    if (sharedNowMs() - lastMs > QUIET_MS) finish()
  }, 50)
  await finished
  clearInterval(quiet)
  await worker.stop()
  return done
}

const before = process.cpuUsage()
const count = act === 'enqueue' ? await enqueue() : await drain()
const { user, system } = process.cpuUsage(before)
await mill.close()
const taken: Taken = { firstMs, lastMs, cpuUs: user + system, jobs: count }
process.stdout.write(`${JSON.stringify(taken)}\n`)
