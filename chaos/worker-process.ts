/** A worker process for the chaos runs: `worker-process.ts <engine url> <folder for its lines>`. */
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from '../src/index.ts'
import type { Line } from './history.ts'
import { chaosJob } from './job.ts'

const [url = '', folder = ''] = process.argv.slice(2)
const file = openSync(join(folder, `${process.pid}.jsonl`), 'a')
const note = (line: Line): void => void writeSync(file, `${JSON.stringify(line)}\n`)

const mill = await open(url).catch((error: unknown) => {
  // The server is away; whoever started this process starts another one.
  console.error(`a worker process did not start: ${error instanceof Error ? error.message : error}`)
  process.exit(1)
})
const tokens = new Map<string, string>()
const job = chaosJob.handledBy(async ({ payload, job: running }) => {
  const { id, attempt, token } = running
  // Written through before the work, so that a killed start leaves its trace.
  note({ what: 'start', id, attempt, token, pid: process.pid })
  tokens.set(`${id}/${attempt}`, token)
  await sleep(payload.ms)
  return { token, pid: process.pid }
})
const noteEnd = (what: 'accepted' | 'lost', id: string, attempt: number): void => {
  const token = tokens.get(`${id}/${attempt}`)
  tokens.delete(`${id}/${attempt}`)
  if (token !== undefined) note({ what, id, attempt, token, pid: process.pid })
}
mill.events.on('job.settled', (event) => {
  if (event.outcome.kind === 'complete') noteEnd('accepted', event.job.id, event.attempt)
})
mill.events.on('lease.lost', (event) => noteEnd('lost', event.job.id, event.attempt))
const worker = await mill.work([job], { concurrency: 20, reap: '1s', signals: true })
process.send?.('ready')
await worker.stopped
await mill.close()
process.disconnect?.()
