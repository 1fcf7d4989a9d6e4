import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const urlOf = (file: string): string => JSON.stringify(new URL(file, import.meta.url).href)

/** Settles batches of which two are always unanswered, and prints by how many bytes the heap grew without a full collection. */
const SETTLING = `
const { SettleQueue } = await import(${urlOf('./settle-queue.ts')})
const { systemClock } = await import(${urlOf('../time/clock.ts')})
const nothing = () => {}
const answers = []
const queue = new SettleQueue({
  clock: systemClock,
  consumer: { settle: () => new Promise((resolve) => answers.push(() => resolve([]))) },
  onAccepted: nothing, onLost: nothing, onAnswered: nothing, onError: nothing, afterFlush: nothing,
})
const turn = () => new Promise((resolve) => setImmediate(resolve))
async function batch() {
  for (let n = 0; n < 300; n += 1) {
    const lease = { job: { id: String(n) }, token: 'token' }
    queue.add({ lease, outcome: { kind: 'complete' }, phase: 'settling', held: new Array(100).fill(n) })
  }
  await turn()
  if (answers.length > 2) answers.shift()()
  await turn()
}
for (let n = 0; n < 20; n += 1) await batch()
gc()
const before = process.memoryUsage().heapUsed
for (let n = 0; n < 100; n += 1) {
  await batch()
  // An object that lives through two of these is an old one.
  if (n % 10 === 9) gc({ type: 'minor' })
}
console.log(process.memoryUsage().heapUsed - before)`

test('batches that are answered are free for a collection of young objects', () => {
  const args = ['--disable-warning=ExperimentalWarning', '--expose-gc', '--input-type=module', '-e', SETTLING]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 })
  assert.equal(stderr, '')
  // All batches together hold some 30 MB.
  assert.ok(Number(stdout) < 5_000_000, `the heap grew by ${stdout} bytes`)
})
