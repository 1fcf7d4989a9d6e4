import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { defineJob } from '../../src/index.ts'
import { capturingLog, type LogLine } from '../../src/testing/capture.ts'
import { systemClock } from '../../src/time/clock.ts'
import { tempFiles } from '../../test/fixtures/temp-files.ts'
import { BaseWorker, JOB_TYPES, queueOf, specOf } from './index.ts'
import { preset } from './preset.ts'

const files = tempFiles()

async function opened(t: TestContext, options: Partial<Parameters<typeof preset.open>[0]> = {}) {
  const lines: LogLine[] = []
  const engine = `sqlite:${files.next()}`
  const one = await preset.open({
    ...{ engine, config: null, instance: 1, jobs: [], record: () => {}, log: capturingLog(lines), clock: systemClock },
    ...options,
  })
  t.after(() => one.close?.())
  const [worker] = one.workers
  const missing = lines.find(({ text }) => text.startsWith('These types have no worker here'))?.fields.types
  return { ...one, engine, jobs: worker?.jobs ?? [], lines, missing }
}

test('the workers of the package run beside those of the user, whose own replace them', async (t) => {
  const given = [
    defineJob({ ...specOf('embedding-batch'), run: () => 'mine' }),
    defineJob({ ...specOf('quota-check'), schedule: '0 6 * * *', run: () => null }),
    defineJob({ type: 'other', run: () => null }),
  ]
  const { jobs, missing } = await opened(t, { jobs: given })
  const batch = jobs.filter(({ type }) => type === 'embedding-batch')
  assert.deepEqual([batch.length, batch[0]?.run], [1, given[0]?.run])
  assert.deepEqual(jobs.map(({ type }) => type).toSorted(), [
    ...['embedding-batch', 'embedding-reindex', 'index-optimization', 'memory-cleanup', 'memory-consolidation'],
    ...['memory-embedding', 'memory-importance-decay', 'other', 'quota-check', 'webhook-dispatch'],
  ])
  assert.deepEqual(missing, [
    ...['trajectory-process', 'pattern-training', 'ewc-consolidation', 'session-cleanup', 'session-archive'],
    ...['index-rebalance', 'slack-sync', 'audit-export', 'data-export', 'data-deletion'],
  ])
  const crons = jobs.flatMap(({ type, schedule }) => (schedule === null ? [] : [[type, schedule.cron, schedule.tz]]))
  assert.deepEqual(crons.toSorted(), [
    ['index-optimization', '0 0 3 * * *', 'UTC'],
    ['memory-cleanup', '0 30 3 * * *', 'UTC'],
    ['memory-importance-decay', '0 0 */6 * * *', 'UTC'],
    ['quota-check', '0 6 * * *', 'UTC'],
  ])
})

test('nothing is missing where a queue of the user has all other types', async (t) => {
  class Any extends BaseWorker {
    process() {
      return null
    }
  }
  const all = queueOf(
    'ruvbot',
    Object.values(JOB_TYPES).map((type) => new Any(type)),
  )
  const { jobs, missing } = await opened(t, { jobs: [all] })
  assert.deepEqual([jobs.map(({ type }) => type), missing], [['ruvbot', 'memory-embedding'], undefined])
})

test('a configuration that cannot be meant is refused, and the password of an engine is not printed', async (t) => {
  const config = `${files.next()}.json`
  const refused = (text: string): Promise<unknown> => {
    writeFileSync(config, text)
    return opened(t, { config }).then(
      () => assert.fail('it was opened'),
      (error) => `${error.code} ${error.message}`,
    )
  }
  assert.match(String(await refused('{"embeder":{}}')), /ERR_OPTION_INVALID .*is invalid: .*embeder/)
  assert.match(String(await refused('{"embedder":{"kind":"openai","url":"http://127.0.0.1:1/v1"}}')), /embedder\.model/)
  assert.match(String(await refused('{"webhooks":{"retention":"soon"}}')), /webhooks\.retention: is not a duration/)
  assert.match(String(await refused('[')), /is not JSON/)
  const sources = '{"embedder":{"kind":"openai","url":"http://127.0.0.1:1/v1","model":"m","keyRef":"env:NO_SUCH"}}'
  assert.match(String(await refused(sources)), /NO_SUCH is not set/)
  writeFileSync(config, `{"database":"sqlite:${files.next()}"}`)
  const { examples, lines } = await opened(t, { engine: 'redis://:geheim@127.0.0.1:6379', config })
  assert.doesNotMatch(JSON.stringify([examples, lines]), /geheim/)
})
