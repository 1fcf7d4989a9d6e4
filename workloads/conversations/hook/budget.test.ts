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

const rankOf = (sample: readonly number[], share: number): number =>
  sample.toSorted((one, other) => one - other)[Math.ceil(sample.length * share) - 1] ?? Number.NaN
const p95 = (sample: readonly number[]): number => rankOf(sample, 0.95)
const median = (sample: readonly number[]): number => rankOf(sample, 0.5)

function wallMs(act: () => void): number {
  const startedMs = performance.now()
  act()
  return performance.now() - startedMs
}

/** What other processes take meanwhile does not count. */
function cpuMs(act: () => void): number {
  const before = process.cpuUsage()
  act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

const rounds = <Value>(act: (round: number) => Value): readonly Value[] =>
  Array.from({ length: ROUNDS }, (_, round) => act(round))

/**
 * The budget is for a quiet machine. Where disk or processor are shared, as in a run of all tests, what cannot be done without
 * takes longer too: `bare` is that, measured in the same moments.
 */
function assertWithin(budgetMs: number, sample: readonly number[], { bare, times }: Allowance): void {
  const isWithin = p95(sample) < budgetMs || median(sample) < times * median(bare)
  const figures = `p95 ${p95(sample)} ms, median ${median(sample)} ms, of the bare ${median(bare)} ms`
  assert.ok(isWithin, figures)
}

interface Allowance {
  readonly bare: readonly number[]
  readonly times: number
}

// B10 B170
test('sanitising 10 kB takes less than 50 ms', () => {
  const sanitize = createSanitizer()
  const text = PROMPT.repeat(200).slice(0, 10_000)
  const tookMs = p95(rounds((round) => cpuMs(() => void sanitize(`${round} ${text}`))))
  assert.ok(tookMs < 50, `${tookMs} ms`)
})

// B171 B172
test('the write with synchronous=full takes less than 20 ms, the enqueue less than 10 ms', () => {
  const database = openDatabase(files.next(), { nowMs: 0 })
  const parts = { sanitize: createSanitizer(), secret: () => new Uint8Array(32), nowMs: 0 }
  const messages = rounds((round) =>
    sanitizeMessage({ event: '', conversationId: toConversationId(`${round}`), role: 'user', content: PROMPT }, parts),
  )
  database.exec('CREATE TABLE bare (round INTEGER)')
  const insert = database.prepare('INSERT INTO bare VALUES (?)')
  const bare: number[] = []
  const writing = messages.map((message, round) => {
    bare.push(wallMs(() => void inTransaction(database, () => insert.run(round))))
    return wallMs(() => void inTransaction(database, () => writeMessage(database, message, round)))
  })
  const enqueueing = inTransaction(database, () =>
    rounds((round) => {
      const about = toConversationId(`new ${round}`)
      return cpuMs(() => void enqueueJob(database, { type: SANITIZE_AI_VALIDATION, about, payload: {} }, round))
    }),
  )
  database.close()
  assertWithin(20, writing, { bare, times: 10 })
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
  assertWithin(100, hooks, { bare: empty, times: 2.5 })
})
