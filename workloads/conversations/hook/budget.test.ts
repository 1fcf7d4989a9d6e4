/** The budgets of the hook, in small. `npm run bench:hook` publishes the figures. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { hookRig } from '../../../test/fixtures/hook.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { SANITIZE_AI_VALIDATION } from '../jobs/contract.ts'
import { createSanitizer } from '../sanitize/sanitize.ts'
import { inTransaction, openDatabase } from '../store/database.ts'
import { enqueueJob } from '../store/enqueue.ts'
import { sanitizeMessage, writeMessage } from './capture.ts'
import { toConversationId } from './input.ts'

const files = tempFiles()
const ROUNDS = 40
const PROMPT = 'Please fix src/login.ts: ann@example.com cannot sign in since the last release.\n'

const p95 = (sample: readonly number[]): number =>
  sample.toSorted((one, other) => one - other)[Math.ceil(sample.length * 0.95) - 1] ?? Number.NaN

function timed(act: (round: number) => void): readonly number[] {
  return Array.from({ length: ROUNDS }, (_, round) => {
    const startedMs = performance.now()
    act(round)
    return performance.now() - startedMs
  })
}

// B10 B170
test('sanitising 10 kB takes less than 50 ms', () => {
  const sanitize = createSanitizer()
  const text = PROMPT.repeat(200).slice(0, 10_000)
  const tookMs = p95(timed((round) => void sanitize(`${round} ${text}`)))
  assert.ok(tookMs < 50, `${tookMs} ms`)
})

// B171 B172
test('the write with synchronous=full takes less than 20 ms, the enqueue less than 10 ms', () => {
  const database = openDatabase(files.next(), { nowMs: 0 })
  const parts = { sanitize: createSanitizer(), secret: () => new Uint8Array(32), nowMs: 0 }
  const messages = Array.from({ length: ROUNDS }, (_, round) =>
    sanitizeMessage({ event: '', conversationId: toConversationId(`${round}`), role: 'user', content: PROMPT }, parts),
  )
  const writing = timed((round) => {
    const message = messages[round]
    assert.ok(message)
    inTransaction(database, () => writeMessage(database, message, round))
  })
  const enqueueing = inTransaction(database, () =>
    timed((round) => {
      enqueueJob(
        database,
        { type: SANITIZE_AI_VALIDATION, about: toConversationId(`new ${round}`), payload: {} },
        round,
      )
    }),
  )
  database.close()
  assert.ok(p95(writing) < 20, `${p95(writing)} ms`)
  assert.ok(p95(enqueueing) < 10, `${p95(enqueueing)} ms`)
})

// B01 B169
test('a whole hook takes less than 100 ms, or than two and a half times what an empty Node takes on this machine', async () => {
  const rig = await hookRig()
  const env = { MILLRACE_ENGINE: `sqlite:${rig.next()}` }
  const [empty, hooks]: [number[], number[]] = [[], []]
  for (let round = 0; round < 20; round += 1) {
    const startedMs = performance.now()
    await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
    empty.push(performance.now() - startedMs)
    const { code, stderr, tookMs } = await rig.prompt(PROMPT, { env })
    assert.deepEqual([code, stderr], [0, ''])
    hooks.push(tookMs)
  }
  assert.ok(p95(hooks) < Math.max(100, 2.5 * p95(empty)), `${p95(hooks)} ms, an empty Node ${p95(empty)} ms`)
})
