import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { open } from 'millrace'
import { ROOT, startScript, temporaryFolder, until } from '../cli/run.ts'

const example = (file: string): string => join(ROOT, 'examples', file)

test('hello prints the result of its job', async (t) => {
  const { code, out, err } = await startScript(t, example('hello/main.ts'), ['Ann'], { cwd: await temporaryFolder(t) })
    .ended
  assert.deepEqual({ code, out, err }, { code: 0, out: 'Hello, Ann\n', err: '' })
})

test('transaction keeps the row and the job together', async (t) => {
  const cwd = await temporaryFolder(t)
  const { code, out, err } = await startScript(t, example('transaction/main.ts'), [], { cwd }).ended
  assert.equal(err, '')
  assert.equal(out, 'welcomed Ann\nAnn was not signed up: UNIQUE constraint failed: users.name\n1 user, 1 job\n')
  assert.equal(code, 0)
})

// B04
test('dependencies runs its flow in order and reports on a job that died', async (t) => {
  const cwd = await temporaryFolder(t)
  const { code, out, err } = await startScript(t, example('dependencies/main.ts'), [], { cwd }).ended
  assert.equal(err, '')
  assert.equal(out, '{"letters":29}\n{"words":4}\ndead: there are no pictures in a text\n')
  assert.equal(code, 0)
})

// A128
test('schedule runs on the clock, at once when told, and is paused', async (t) => {
  const cwd = await temporaryFolder(t)
  const { code, out, err } = await startScript(t, example('schedule/main.ts'), [], { cwd }).ended
  assert.equal(err, '')
  assert.match(
    out,
    /^three in the morning in Berlin is 0[12] UTC\n(beat from the clock\n){3}2 runs on the clock, now paused\n$/,
  )
  assert.equal(code, 0)
})

// A56 A60 A67
test('framework runs a class and a function side by side', async (t) => {
  const cwd = await temporaryFolder(t)
  const { code, out, err } = await startScript(t, example('framework/main.ts'), [], { cwd }).ended
  assert.equal(err, '')
  assert.deepEqual(out.trimEnd().split('\n'), [
    'ERR_HANDLER_MISSING',
    'reading general for acme',
    'warning: Worker slack-sync final failure',
    'given up: no such channel',
    '{ read: 7 } ERR_JOB_DEAD { over: [] }',
    'worker.slack-sync.started 2',
    'worker.slack-sync.completed 1',
    'worker.slack-sync.failed 1',
  ])
  assert.equal(code, 0)
})

// B08 B131
test('shutdown finishes what it can, gives back the rest and leaves nothing leased', async (t) => {
  const cwd = await temporaryFolder(t)
  const running = startScript(t, example('shutdown/main.ts'), [], { cwd })
  await running.said('started long')
  await running.said('started short')
  running.child.kill('SIGTERM')
  const { code, out, err } = await running.ended
  assert.equal(err, '')
  assert.equal(code, 0)
  assert.match(out, /complete short\n(?:.*\n)*release long\nstopped\n$/)
  const mill = await open(`sqlite:${join(cwd, 'shutdown.db')}`)
  t.after(() => mill.close())
  const [long] = await mill.jobs({ type: 'long' })
  assert.deepEqual([long?.state, long?.attempt], ['queued', 0])
})

test('the route stores the job before it answers, refuses what is malformed, and shows the result', async (t) => {
  const running = startScript(t, example('http/server.ts'), [], { cwd: await temporaryFolder(t) })
  const listening = /listening on (http:\S+)\n/
  await running.said(listening)
  const origin = listening.exec(running.output)?.[1] ?? assert.fail()
  const post = async (body: string, key: string) => {
    const headers = { 'idempotency-key': key, connection: 'close' }
    const response = await fetch(`${origin}/reports`, { method: 'POST', body, headers })
    return { status: response.status, body: (await response.json()) as Record<string, string> }
  }
  const first = await post('{"month":"2026-01"}', 'a1')
  assert.equal(first.status, 202)
  assert.equal(first.body.status, 'enqueued')
  const wrong = await post('{"month":"January"}', 'a2')
  assert.equal(wrong.status, 400)
  assert.equal((await post('no json', 'a3')).status, 400)
  const look = async () => {
    const response = await fetch(`${origin}${first.body.href}`, { headers: { connection: 'close' } })
    return (await response.json()) as { state: string; result: unknown }
  }
  await until(async () => (await look()).state === 'completed')
  assert.deepEqual((await look()).result, { title: 'Report of 2026-01' })
  assert.equal((await fetch(`${origin}/reports/none`, { headers: { connection: 'close' } })).status, 404)
  running.child.kill('SIGTERM')
  const { code, err } = await running.ended
  assert.deepEqual({ code, err }, { code: 0, err: '' })
})
