import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from '../../src/index.ts'
import { startAlerting } from '../../src/observe/index.ts'
import { openForTest } from '../../src/testing/index.ts'
import { conversationRules } from './alert-rules.ts'

// B157 X087 X088
test('a job is slow by its own budget: uploads may take 30 s, other jobs may not', async () => {
  await using t = await openForTest()
  const { mill, clock } = t
  const jobs = ['sanitize_ai_validation', 'extract_learning', 'mine_upload', 'other'].map((type) =>
    defineJob({ type, run: () => clock.sleep(12_000) }),
  )
  const alerting = startAlerting(mill, { rules: conversationRules(), clock })
  const worker = await mill.work(jobs)
  for (const job of jobs) await mill.enqueue(job, null)
  await clock.advance('20s')
  await alerting.look()
  const slow = alerting.current().map(({ rule, labels, threshold }) => [rule, labels.type, threshold])
  assert.deepEqual(slow.toSorted(), [
    ['latency_p95', 'extract_learning', 5_000],
    ['latency_p95', 'other', 10_000],
    ['latency_p95', 'sanitize_ai_validation', 2_000],
  ])
  await worker.stop()
  await alerting.stop()
})
