/** A broker that keeps less with a commit than our progress takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { newJob } from '../fixtures/new-job.ts'
import { freshName, startKafka } from '../servers/kafka.ts'
import { openEngine, urlOf } from './kafka-fixtures.ts'

test('a broker whose commits may say too little is found when a worker starts, and by the doctor', async (t) => {
  const server = await startKafka({ 'offset.metadata.max.bytes': '256' })
  t.after(() => server.end())
  const url = urlOf(server, freshName('group'))
  const mill = await open(url)
  t.after(() => mill.close())
  await assert.rejects(
    mill.work([defineJob({ type: 'a', run: () => {} })]),
    /256 bytes \(offset\.metadata\.max\.bytes\) and Millrace needs 4096.*Set offset\.metadata\.max\.bytes=4096/,
  )
  const engine = await openEngine(url)
  t.after(() => engine.close())
  // Who only enqueues needs no commits.
  await engine.enqueue([newJob({ type: 'a' })])
  const findings = await engine.diagnose()
  const found = findings.filter(({ subject }) => subject === 'commits')
  assert.deepEqual(
    found.map(({ severity, detail }) => [severity, /offset\.metadata\.max\.bytes/.test(detail)]),
    [['error', true]],
  )
})
