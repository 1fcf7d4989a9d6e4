import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../../src/client/mill.ts'
import { drain } from '../../../src/testing/drain.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { addMessages, finding, oneEach, openPipeline } from '../../../test/fixtures/conversations.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { conversationJobs } from '../pipeline.ts'
import { EXTRACT_LEARNING, SANITIZE_AI_VALIDATION } from './contract.ts'

const files = tempFiles()

function p95(durations: readonly number[]): number {
  return durations.toSorted((one, other) => one - other)[Math.ceil(durations.length * 0.95) - 1] ?? 0
}

// B59 B69 B173 B174
test('with a model that takes 200 ms the p95 of validations is below 2 s and that of extractions below 5 s', async () => {
  const file = files.next()
  await using pipeline = await openPipeline(file)
  const { database, model, parts } = pipeline
  await using mill = await open(`sqlite:${file}`)
  const count = 20
  for (let index = 0; index < count; index += 1) {
    const conversation = `01HXZ0000000000000000000${String(index).padStart(2, '0')}`
    const texts = Array.from({ length: 20 }, (_, message) => `${index} ${message} by Ann: ${'words '.repeat(50)}`)
    addMessages(database, texts, { conversation })
  }
  model.before = () => systemClock.sleep(200)
  model.findings = finding('Ann')
  model.learnings = oneEach
  const [validation, extraction] = conversationJobs({ ...parts, clock: systemClock })
  await drain(mill, [validation, extraction], { concurrency: 10, timeout: '60s' })
  const durations = async (type: string) => (await mill.jobs({ type })).map(({ durationMs }) => durationMs ?? Infinity)
  for (const [type, budgetMs] of [
    [SANITIZE_AI_VALIDATION, 2_000],
    [EXTRACT_LEARNING, 5_000],
  ] as const) {
    const all = await durations(type)
    assert.equal(all.length, count)
    assert.ok(p95(all) < budgetMs, `${type}: p95 ${p95(all)} ms`)
    assert.ok(Math.min(...all) >= 199, 'the model was waited for')
  }
})
