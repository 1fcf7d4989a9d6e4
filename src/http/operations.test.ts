import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BulkOutcome } from '../desk/bulk.ts'
import { capturingLog, type LogLine } from '../testing/capture.ts'
import { TestClock } from '../testing/test-clock.ts'
import { type OperationStart, Operations, type OperationView } from './operations.ts'

const outcome: BulkOutcome = {
  ...{ seen: 2, done: 1, refused: { critical: 1 }, total: 2 },
  ...{ dryRun: false, interrupted: false, selection: {} },
}

function open() {
  const lines: LogLine[] = []
  const operations = new Operations({ clock: new TestClock(), log: capturingLog(lines) })
  const start = (run: OperationStart['run']) => operations.start({ kind: 'replay', who: 'ann', reason: 'x', run })
  return { operations, start, lines }
}

/** Goes on until it is told to stop. */
const endless: OperationStart['run'] = ({ signal }) =>
  new Promise((resolve) => {
    const stop = (): void => resolve({ ...outcome, interrupted: true })
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop)
  })

/** What listeners are told of one, until it has ended. */
function toldOf(operations: Operations, id: string): Promise<readonly OperationView[]> {
  const told: OperationView[] = []
  return new Promise((resolve) => {
    const off = operations.subscribe((view) => {
      if (view.id !== id) return
      told.push(view)
      if (view.status === 'running') return
      off()
      resolve(told)
    })
  })
}

test('an act tells how far it is, and how it ended', async () => {
  const { operations, start } = open()
  const { id, ...begun } = start(async ({ onProgress }) => {
    onProgress({ seen: 1, done: 1, refused: {}, total: 2 })
    return outcome
  })
  assert.deepEqual([begun.status, begun.progress], ['running', { seen: 0, done: 0, refused: {}, total: null }])
  const told = await toldOf(operations, id)
  assert.deepEqual(
    told.map(({ status, progress }) => [status, progress.seen]),
    [
      ['running', 1],
      ['done', 2],
    ],
  )
  assert.deepEqual(operations.find(id).progress.refused, { critical: 1 })
})

test('an act that fails says why, in the log too', async () => {
  const { operations, start, lines } = open()
  const { id } = start(() => Promise.reject(new Error('the store is away: password=secret')))
  await toldOf(operations, id)
  const { status, error } = operations.find(id)
  assert.deepEqual([status, error], ['failed', 'the store is away: password=[redacted]'])
  assert.equal(lines.length, 1)
})

test('closing stops what runs, waits for it, and takes nothing new', async () => {
  const { operations, start } = open()
  const { id } = start(endless)
  await operations.close()
  assert.equal(operations.find(id).status, 'stopped')
  assert.throws(() => start(endless), { code: 'ERR_CLOSED' })
})

test('only so many run at once, and only so many are remembered', async () => {
  const { operations, start } = open()
  for (let n = 0; n < 10; n += 1) start(endless)
  assert.throws(() => start(endless), { code: 'ERR_DESK_REFUSED' })
  for (const { id } of operations.list()) {
    const ended = toldOf(operations, id)
    operations.stop(id)
    await ended
  }
  for (let n = 0; n < 150; n += 1) {
    const { id } = start(async () => outcome)
    await toldOf(operations, id)
  }
  assert.equal(operations.list().length, 100)
  await operations.close()
})
