import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineJob, open } from 'millrace'
import { casesOf, runCases } from 'millrace/conformance'
import { arrayHarness } from '../../examples/engine/harness.ts'
import { ROOT, startScript, temporaryFolder } from '../cli/run.ts'

test('the smallest engine keeps the whole contract, or is excused and refuses', async (t) => {
  const cwd = await temporaryFolder(t)
  const { code, out, err } = await startScript(t, join(ROOT, 'examples/engine/main.ts'), [], { cwd }).ended
  assert.equal(err, '')
  assert.equal(code, 0)
  assert.match(out, /^port: [1-9]\d+ kept, \d+ excused, 0 failed\nclient: \d+ kept, \d+ excused, 0 failed\nprocess: /)
})

test('the suite fails it when its fence is gone', async () => {
  const create = async () => {
    const harness = await arrayHarness()
    const { engine } = harness
    const tokenOf = (id: string): string => engine.store().rows.find(({ job }) => job.id === id)?.token ?? ''
    const consume = engine.consume.bind(engine)
    engine.consume = async (subscription) => {
      const consumer = await consume(subscription)
      const settle = consumer.settle.bind(consumer)
      // Accepts a settle from any holder.
      consumer.settle = (settlements) =>
        settle(
          settlements.map(({ lease, outcome }) => ({ lease: { ...lease, token: tokenOf(lease.job.id) }, outcome })),
        )
      return consumer
    }
    return harness
  }
  const fencing = casesOf('port').filter(({ guarantees }) => guarantees.includes('I3'))
  const results = await runCases(create, fencing, { caseMs: 5_000 })
  assert.ok(results.some(({ status }) => status === 'kept'))
  assert.ok(results.some(({ status }) => status === 'failed'))
})

test('jobs run on it, and what it cannot do is refused at the door', async () => {
  const { engine } = await arrayHarness()
  const mill = await open(engine)
  await assert.rejects(mill.enqueue(defineJob({ type: 'greet' }), null, { key: 'once' }), { code: 'ERR_UNSUPPORTED' })
  await mill.enqueue(defineJob({ type: 'greet' }), null)
  assert.equal((await mill.counts()).greet?.ready, 1)
  await mill.close()
})
