import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Mill, open } from '../client/mill.ts'
import { Events } from '../events.ts'
import { defineJob, type Log } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'
import { attachLog, createLog } from './log.ts'

interface Line {
  readonly level: keyof Log
  readonly text: string
  readonly fields: Readonly<Record<string, unknown>>
}

function recorder(): { lines: Line[]; log: Log } {
  const lines: Line[] = []
  const write =
    (level: keyof Log): Log[keyof Log] =>
    (text, fields = {}) =>
      void lines.push({ level, text, fields })
  return { lines, log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') } }
}

interface Stage {
  readonly mill: Mill
  readonly clock: TestClock
  readonly lines: Line[]
}

async function staged(): Promise<Stage> {
  const clock = new TestClock()
  const { lines, log } = recorder()
  const mill = await open('memory:', { clock, log, random: () => 0 })
  return { mill, clock, lines }
}

const about = (lines: readonly Line[], id: string) =>
  lines.filter(({ fields }) => fields.job_id === id).map(({ level, text, fields }) => ({ level, text, fields }))

// B159 B160 B161 A59 A63 A68
test('a completed job leaves its lines, each with the fields of the conversation pipeline', async () => {
  const { mill, clock, lines } = await staged()
  const job = defineJob({
    type: 'send',
    async run({ progress, log }) {
      await progress(50)
      log.info('Half way', { of: 2 })
      await clock.sleep(200)
    },
  })
  const { id } = await mill.enqueue(job, null, { priority: 3 })
  const worker = await mill.work([job])
  await clock.advance(200)
  const fields = { job_id: id, job_type: 'send', worker_id: worker.id, attempts: 1 }
  assert.deepEqual(about(lines, id), [
    { level: 'debug', text: 'Job enqueued', fields: { job_id: id, job_type: 'send', status: 'enqueued', bytes: 4 } },
    { level: 'info', text: 'Job claimed', fields: { ...fields, priority: 3 } },
    { level: 'info', text: 'Job started', fields },
    { level: 'debug', text: 'Job progress', fields: { ...fields, progress: 50 } },
    // A55
    { level: 'info', text: 'Half way', fields: { of: 2, name: 'worker:send', ...fields } },
    { level: 'info', text: 'Job completed', fields: { ...fields, duration_ms: 200 } },
  ])
  await mill.close()
})

// B122 B125 B162 B163 A65
test('a failing job is logged as failed, retried, and moved to dead_letter', async () => {
  const { mill, clock, lines } = await staged()
  const job = defineJob({
    type: 'fail',
    attempts: 2,
    backoff: { kind: 'fixed', delay: 300 },
    run() {
      throw new Error('could not reach bob@example.com')
    },
  })
  const { id } = await mill.enqueue(job, null)
  const worker = await mill.work([job])
  await clock.advance('1s')
  const fields = { job_id: id, job_type: 'fail', worker_id: worker.id }
  const error = 'could not reach [email]'
  const failures = about(lines, id).filter(({ level }) => level === 'warn' || level === 'error')
  assert.deepEqual(failures, [
    { level: 'error', text: 'Job failed', fields: { ...fields, attempts: 1, duration_ms: 0, error } },
    {
      level: 'warn',
      text: 'Job retried in 300 ms (attempt 1 of 2)',
      fields: { ...fields, attempts: 1, attempts_max: 2, delay_ms: 300, error },
    },
    { level: 'error', text: 'Job failed', fields: { ...fields, attempts: 2, duration_ms: 0, error } },
    { level: 'error', text: 'Job moved to dead_letter', fields: { ...fields, attempts: 2, error } },
  ])
  await mill.close()
})

// B141
test('a shutdown tells what it waits for and what was not finished in time', async () => {
  const { mill, clock, lines } = await staged()
  const job = defineJob({ type: 'deaf', run: () => new Promise(() => {}) })
  const { id } = await mill.enqueue(job, null)
  const worker = await mill.work([job], { drain: '2s' })
  await turn()
  const stopped = worker.stop('SIGTERM')
  await clock.advance('5s')
  await stopped
  const told = lines
    .filter(({ fields }) => fields.worker_id === worker.id && !('job_type' in fields))
    .map(({ level, text, fields: { worker_id, ...fields } }) => ({ level, text, fields }))
  assert.deepEqual(told, [
    { level: 'info', text: 'Worker starting', fields: { types: ['deaf'], concurrency: 10 } },
    { level: 'info', text: 'Signal received', fields: { signal: 'SIGTERM' } },
    { level: 'info', text: 'Waiting for job', fields: { job_id: id } },
    { level: 'warn', text: 'Job not finished in time', fields: { job_id: id, drain_ms: 2_000 } },
    { level: 'info', text: 'Shutdown complete', fields: {} },
    { level: 'info', text: 'Worker stopped', fields: {} },
  ])
  await mill.close()
})

// B100 B125
// B167
test('retention tells how many jobs it removed, and only when there are any', () => {
  const events = new Events()
  const { lines, log } = recorder()
  attachLog(events, log)
  events.emit('retention.pass', { removed: 0, evicted: 0, interrupted: false, durationMs: 1 })
  assert.deepEqual(lines, [])
  events.emit('retention.pass', { removed: 3, evicted: 2, interrupted: false, durationMs: 9 })
  assert.deepEqual(lines, [
    {
      level: 'info',
      text: 'Finished jobs removed',
      fields: { count: 5, evicted: 2, interrupted: false, duration_ms: 9 },
    },
  ])
})

test('the reaper warns with the count, and only when there is one', () => {
  const events = new Events()
  const { lines, log } = recorder()
  attachLog(events, log)
  events.emit('reaper.pass', { retried: 0, dead: 0, durationMs: 1 })
  assert.deepEqual(lines, [])
  const job = { id: 'j', type: 't', priority: 5, attempts: 3, tenant: null, runAtMs: 0, createdAtMs: 0 }
  const error = { name: 'E', code: null, message: 'lease expired', stack: null }
  events.emit('lease.reaped', { job, attempt: 3, worker: 'w', outcome: { kind: 'dead', error } })
  events.emit('reaper.pass', { retried: 2, dead: 1, durationMs: 4 })
  assert.deepEqual(lines, [
    {
      level: 'error',
      text: 'Job moved to dead_letter',
      fields: { job_id: 'j', job_type: 't', worker_id: 'w', attempts: 3, error: 'lease expired' },
    },
    {
      level: 'warn',
      text: 'Expired leases recovered',
      fields: { count: 3, retried: 2, dead: 1, duration_ms: 4 },
    },
  ])
})

// B200 I12
test('no line of any outcome carries the payload or the result', async () => {
  const { mill, clock, lines } = await staged()
  const marker = 'MARKER-4711'
  const runs: Record<string, () => unknown> = {
    completes: () => marker,
    fails: () => {
      throw new Error('no')
    },
    hangs: () => new Promise(() => {}),
  }
  const jobs = Object.entries(runs).map(([type, run]) => defineJob({ type, attempts: 2, timeout: 100, run }))
  for (const job of jobs) await mill.enqueue(job, { secret: marker }, { delay: 10 })
  const cancelled = await mill.enqueue(defineJob({ type: 'completes' }), { secret: marker }, { delay: '1h' })
  await mill.cancel(cancelled.id)
  await mill.work(jobs)
  await clock.advance('1m')
  await mill.close()
  assert.ok(lines.length > 12)
  assert.ok(!JSON.stringify(lines).includes(marker))
})

test('a detached log hears nothing more', () => {
  const events = new Events()
  const { lines, log } = recorder()
  const detach = attachLog(events, log)
  events.emit('worker.stopped', { worker: 'w' })
  const before = lines.length
  detach()
  events.emit('worker.stopped', { worker: 'w' })
  assert.equal(lines.length, before)
  assert.equal(events.hasListener('worker.stopped'), false)
})

test('a worker error is logged by its text, redacted', () => {
  const events = new Events()
  const { lines, log } = recorder()
  attachLog(events, log)
  events.emit('worker.error', { worker: 'w', during: 'claim', error: new Error('password=hunter22 refused') })
  assert.deepEqual(lines, [
    {
      level: 'error',
      text: 'Worker error',
      fields: { worker_id: 'w', during: 'claim', error: 'password=[redacted] refused' },
    },
  ])
})

test('createLog writes JSON lines from its level up, each named once', () => {
  const written: string[] = []
  const log = createLog({ level: 'info', name: 'millrace', destination: { write: (line) => void written.push(line) } })
  log.debug('too fine')
  log.info('Hello', { job_id: 'j' })
  log.error('Half way', { name: 'worker:send' })
  const [first, second] = written.map((line) => JSON.parse(line))
  assert.equal(written.length, 2)
  assert.ok(/^\d{4}-\d\d-\d\dT/.test(first.time))
  assert.deepEqual({ ...first, time: '' }, { level: 'info', time: '', name: 'millrace', job_id: 'j', msg: 'Hello' })
  assert.equal(second.name, 'worker:send')
  assert.equal(written[1]?.match(/"name"/g)?.length, 1)
})

test('createLog writes a line for fields that JSON cannot hold', () => {
  const written: string[] = []
  const log = createLog({ destination: { write: (line) => void written.push(line) } })
  const circular: Record<string, unknown> = { bytes: 1n }
  circular.self = circular
  log.info('Big', { bytes: 12n, error: new TypeError('no') })
  log.info('Circular', { circular })
  const [big, second] = written.map((line) => JSON.parse(line))
  assert.deepEqual([big.bytes, big.error.type, big.error.message], ['12', 'TypeError', 'no'])
  assert.equal(second.msg, 'Circular')
  assert.match(second.circular, /Circular/)
})

test('a program goes on when the reader of its log goes away', async () => {
  const source = `
    const { createLog } = await import(${JSON.stringify(new URL('./log.ts', import.meta.url).href)})
    const log = createLog()
    process.stdout.once('error', () => setImmediate(() => process.exit(7)))
    setInterval(() => log.info('line'), 1)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.once('data', () => child.stdout.destroy())
  const [code] = await once(child, 'exit')
  assert.equal(code, 7)
})
