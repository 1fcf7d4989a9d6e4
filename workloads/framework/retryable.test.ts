import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NonRetryable } from '../../src/index.ts'
import { drain, openForTest, settled } from '../../src/testing/index.ts'
import { again, Told } from './rig.ts'

describe('isRetryable', () => {
  const worker = new Told(() => null)
  const error = (fields: object): Error => Object.assign(new Error('x'), fields)

  // A69..A73 X040
  test('is true for failures of the way', () => {
    const ways = [{ name: 'NetworkError' }, { name: 'TimeoutError' }, { code: 'ECONNRESET' }, { code: 'ECONNREFUSED' }]
    const statuses = [429, 500, 503, 408].map((status) => ({ status }))
    for (const fields of [...ways, ...statuses]) {
      assert.equal(worker.isRetryable(error(fields)), true, JSON.stringify(fields))
    }
  })

  // A74
  test('is false for anything else', () => {
    for (const other of [error({}), error({ status: 400 }), error({ status: 404 }), 'text', undefined]) {
      assert.equal(worker.isRetryable(other), false, String(other))
    }
  })

  /** How the first start of a job ends that fails with this error. */
  async function endOf(Worker: typeof Told, thrown: unknown) {
    await using stage = await openForTest()
    const told = new Worker(() => Promise.reject(thrown), { options: again })
    const receipt = await stage.mill.enqueue(told.definition, null)
    await drain(stage.mill, [told.definition])
    const view = await settled(stage.mill, receipt)
    const failures = told.calls.filter(([name]) => name === 'onFailed')
    return { starts: view.attempt, error: view.error, heard: failures.map(([, heard]) => heard) }
  }

  // A40 X023
  test('as it is, leaves unknown errors to be retried', async () => {
    assert.equal((await endOf(Told, new Error('unknown'))).starts, 3)
    assert.equal((await endOf(Told, error({ status: 503 }))).starts, 3)
    assert.equal((await endOf(Told, error({ status: 404 }))).starts, 1)
  })

  // X036
  test('overridden, decides, and the error stays what it was', async () => {
    class Picky extends Told {
      override isRetryable(thrown: unknown): boolean {
        return thrown instanceof Error && 'status' in thrown && thrown.status === 404
      }
    }
    const plain = new RangeError('unknown')
    const once = await endOf(Picky, plain)
    assert.deepEqual([once.starts, once.error?.name, once.error?.message], [1, 'RangeError', 'unknown'])
    assert.deepEqual(once.heard, [plain])
    assert.match(once.error?.stack ?? '', /RangeError: unknown/)
    const missing = error({ status: 404, name: 'HttpError' })
    const thrice = await endOf(Picky, missing)
    assert.deepEqual([thrice.starts, thrice.error?.name], [3, 'HttpError'])
    assert.ok(thrice.heard.every((heard) => heard === missing))
    assert.equal((await endOf(Picky, Object.create(null))).starts, 1, 'also for what is no error at all')
  })

  test('overridden, does not overrule what a handler asks for by name', async () => {
    class Never extends Told {
      override isRetryable(): boolean {
        return true
      }
    }
    assert.equal((await endOf(Never, new NonRetryable('enough'))).starts, 1)
  })
})
