/** The conversation queue, whole: started by its one command, with work, a failure, dead letters and a lost worker. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineJob, open } from 'millrace'
import { openPipeline } from 'millrace/workloads/conversations'
import { temporaryFolder, until } from '../cli/run.ts'
import { json, modelServer, openAiDialect } from '../fixtures/model-server.ts'
import { endLeases, PresetProcess, writeConfig } from './preset-process.ts'

const VALIDATION = 'sanitize_ai_validation'

// B139 B155 B156 B158 B160..B163
test('millrace start --preset conversations is the queue with its figures, alerts and log, over all processes', async (t) => {
  const folder = await temporaryFolder(t)
  const asked: string[] = []
  const server = await modelServer(t, (response, request) => {
    const text = openAiDialect.user(request)
    asked.push(text)
    const times = (word: string): number => asked.filter((one) => one.includes(word)).length
    if (text.includes('hangs') && times('hangs') === 1) return
    if (text.includes('flaky') && times('flaky') === 1) return json(response, { error: 'later' }, 500)
    json(response, openAiDialect.said('{"findings":[],"learnings":[]}'))
  })
  const model = { kind: 'openai', url: `${server.url}/v1`, model: 'm' }
  const config = await writeConfig(folder, { model })
  const file = join(folder, 'conversations.db')
  const engine = `sqlite:${file}`
  const args = ['--preset', 'conversations', '--engine', engine, '--config', config, '--reap', '500ms']
  const env = { env: { HOME: folder } }

  // Another process does all of this: what the first one says about it, it knows from the file.
  const lost = new PresetProcess(t, [...args, '--no-http'], env)
  await lost.started()
  const pipeline = openPipeline({ engine, home: folder })
  t.after(() => pipeline.close())
  const say = (conversation_id: string, content: string) =>
    pipeline.hookHandler({ event: 'UserPromptSubmit', conversation_id, content })
  const mill = await open(engine)
  t.after(() => mill.close())
  await mill.enqueueMany(defineJob({ type: VALIDATION }), Array(20).fill({ conversation_id: 'no ulid' }))
  await until(async () => (await mill.counts())[VALIDATION]?.dead === 20)
  const dead = await lost.line(({ msg }) => msg === 'Job moved to dead_letter')
  assert.deepEqual([dead.level, dead.job_type, dead.attempts], ['error', VALIDATION, 1])
  assert.match(String(dead.error), /^Invalid payload:/)
  await lost.line(({ msg, severity }) => msg === `Alert: Worker ${VALIDATION} final failure` && severity === 'warning')
  say('one', 'it hangs')
  await until(() => asked.some((text) => text.includes('hangs')))

  const queue = new PresetProcess(t, args, env)
  await queue.started()
  const metrics = () => queue.answer('/api/v1/conversations/metrics')
  const before = await metrics()
  assert.deepEqual([before.deadLetterCount, before.inProgressCount, before.successRate], [20, 1, 0])
  const { alerts } = await queue.answer('/api/v1/conversations/alerts')
  assert.deepEqual(
    [alerts].flat().map((alert) => Object(alert)),
    [
      {
        ...{ severity: 'ERROR', metric: 'success_rate', value: 0, threshold: 0.95 },
        message: '0 % of the jobs were completed, less than 95 %',
      },
      {
        ...{ severity: 'ERROR', metric: 'dead_letter_count', value: 20, threshold: 10 },
        message: '20 dead letters wait, more than 10',
      },
    ],
  )
  assert.equal(await queue.metric('millrace_conversation_dead_letters'), 20)
  assert.equal(await queue.metric('millrace_conversation_success_rate'), 0)
  assert.equal(await queue.metric('millrace_conversation_in_progress'), 1)

  // The worker is lost. Its lease ends, and the other one does its job.
  await lost.lose()
  endLeases(file, VALIDATION)
  const recovered = await queue.line(({ msg }) => msg === 'Expired leases recovered')
  assert.deepEqual([recovered.level, recovered.count], ['warn', 1])
  assert.equal((await metrics()).leaseExpiryRate, 1 / 60)
  assert.equal(await queue.metric('millrace_conversation_lease_expiry_rate'), 1 / 60)

  // A failure and its retry, beside it.
  say('two', 'it is flaky')
  const failed = await queue.line(({ msg, job_type }) => msg === 'Job failed' && job_type === VALIDATION)
  assert.equal(typeof failed.duration_ms, 'number')
  await queue.line(({ msg }) => /^Job retried in [23]\d{3} ms \(attempt 1 of 3\)$/.test(String(msg)))
  await until(async () => Number((await metrics()).completed) === 4)
  const done = (await metrics()).byType
  assert.deepEqual(Object.keys(Object(done)).toSorted(), ['extract_learning', VALIDATION])
  for (const msg of ['Job claimed', 'Job completed']) {
    const line = await queue.line((one) => one.msg === msg)
    for (const field of ['job_id', 'job_type', 'worker_id', 'attempts']) assert.ok(field in line, `${msg}: ${field}`)
  }

  // The rules find what the other process did.
  for (const rule of ['dead_letter_count', 'success_rate']) {
    const alert = await queue.line(({ msg }) => String(msg).startsWith(`Alert ${rule}: `))
    assert.deepEqual([alert.level, alert.severity], ['error', 'error'])
  }
  await queue.stop()
})
