/** A worker process for the chaos runs: `worker-process.ts <engine url> <folder for its lines>`. */
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from '../../src/index.ts'
import { type Line, machineMs } from './history.ts'
import { chaosJob } from './job.ts'

const [url = '', folder = ''] = process.argv.slice(2)
const file = openSync(join(folder, `${process.pid}.jsonl`), 'a')
type Start = Pick<Line, 'id' | 'key' | 'attempt' | 'token'>
const note = (what: Line['what'], { id, key, attempt, token }: Start): void => {
  const line: Line = { what, id, key, attempt, token, pid: process.pid, atMs: machineMs() }
  writeSync(file, `${JSON.stringify(line)}\n`)
}

const mill = await open(url).catch((error: unknown) => {
  // The server is unreachable; the parent process starts another worker.
  console.error(`a worker process did not start: ${error instanceof Error ? error.message : error}`)
  process.exit(1)
})
const starts = new Map<string, Start>()
const job = chaosJob.handledBy(async ({ payload, job: running }) => {
  // Written through before the work, so that a killed start leaves its trace.
  note('start', running)
  starts.set(`${running.id}/${running.attempt}`, running)
  await sleep(payload.ms)
  note('done', running)
  return { token: running.token, pid: process.pid }
})
const noteEnd = (what: 'accepted' | 'lost', id: string, attempt: number): void => {
  const start = starts.get(`${id}/${attempt}`)
  starts.delete(`${id}/${attempt}`)
  if (start !== undefined) note(what, start)
}
mill.events.on('job.settled', (event) => {
  if (event.outcome.kind === 'complete') noteEnd('accepted', event.job.id, event.attempt)
})
mill.events.on('lease.lost', (event) => noteEnd('lost', event.job.id, event.attempt))
const { recovery } = mill.engine.capabilities
const worker = await mill.work([job], { concurrency: 20, signals: true, ...(recovery === 'reaper' && { reap: '1s' }) })
process.send?.('ready')
await worker.stopped
await mill.close()
process.disconnect?.()
