/** Tests of the excuses: engines that can do less must be excused, and their refusals must be looked at. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Capabilities } from '../../src/engine/capabilities.ts'
import type { Consumer, Engine } from '../../src/engine/engine.ts'
import { UnsupportedError } from '../../src/errors.ts'
import { type Alteration, altered } from '../alter.ts'
import * as bounds from '../bounds.ts'
import { memoryHarness } from '../engines/memory.ts'
import * as needs from '../needs.ts'
import * as operations from '../operations.ts'
import { type CaseResult, runCases } from '../run.ts'
import { never, retry } from '../stage.ts'
import { casesOf } from '../table.ts'

const cases = [...casesOf('port'), ...casesOf('client'), ...casesOf('process')]

/** An engine that promises nothing but to store a job and to hand it out. */
const LEAST: Capabilities = {
  scope: 'type',
  survives: 'nothing',
  settle: 'watermark',
  recovery: 'engine',
  recoveryMaxMs: 0,
  enqueueDelayMaxMs: 0,
  retryDelayMaxMs: 0,
  order: 'per-key',
  keys: 'refused',
  latest: false,
  idempotentEnqueue: false,
  enqueueAtomic: false,
  transactionalEnqueue: false,
  limits: 'refused',
  slots: 'refused',
  dependencies: false,
}

const refusesExpired = (right: Consumer): Partial<Consumer> => ({
  claim: async (request) => {
    if (request.from === 'expired') throw new UnsupportedError({ engine: 'memory', limit: 'reaps nothing' })
    return right.claim(request)
  },
})

/** Stores an id that it has seen already once more, as an engine does that only appends. */
function appending(right: Engine): Engine['enqueue'] {
  let copies = 0
  return async (jobs) => {
    const receipts = []
    for (const job of jobs) {
      const [receipt] = await right.enqueue([job])
      copies += 1
      const repeated =
        receipt?.status === 'duplicate' ? await right.enqueue([{ ...job, id: `${job.id}-${copies}` }]) : []
      receipts.push(...(receipt?.status === 'duplicate' ? repeated : receipt === undefined ? [] : [receipt]))
    }
    return receipts
  }
}

/** An engine that brings expired leases back by itself, before it hands out anything. */
const recovering: Alteration = {
  consumer: (right, engine) => {
    const reaping = engine.consume({ types: 'every', worker: 'self:1:1' })
    return {
      claim: async (request) => {
        if (request.from === 'expired') return refusesExpired(right).claim?.(request) ?? []
        const reaper = await reaping
        const expired = await reaper.claim({ max: 1_000, waitMs: 0, signal: never, from: 'expired' })
        if (expired.length > 0) await reaper.settle(expired.map((lease) => ({ lease, outcome: retry() })))
        return right.claim(request)
      },
    }
  },
}

const selfRecovering = (): Alteration => ({
  engine: (right) => ({ capabilities: { ...right.capabilities, recovery: 'engine', recoveryMaxMs: 0 } }),
  ...recovering,
})

const least = (): Alteration => ({
  engine: (right) => ({ capabilities: LEAST, enqueue: appending(right) }),
  without: ['inspector', 'controls', 'deadLetters', 'retention', 'records', 'logs'],
  ...recovering,
})

const failed = (results: readonly CaseResult[]): readonly string[] =>
  results.flatMap((result) => (result.status === 'failed' ? [`${result.name}: ${String(result.error)}`] : []))

test('an engine that promises the least is excused by every need, and refuses all of it', async () => {
  const results = await runCases(
    altered(() => memoryHarness(), least),
    cases,
  )
  assert.deepEqual(failed(results), [])
  const sentences = new Set(results.flatMap((result) => (result.status === 'excused' ? [result.sentence] : [])))
  const all = [...Object.values(needs), ...Object.values(bounds), ...Object.values(operations)]
  const poor = altered(() => memoryHarness(), least)
  const { engine, destroy } = await poor()
  const expected = all.flatMap((need) => (typeof need === 'object' ? [need.excuse(engine)] : []))
  await destroy()
  assert.deepEqual([...sentences].sort(), [...new Set(expected)].sort())
  const kept = results.filter(({ status }) => status === 'kept')
  assert.ok(kept.length > 50, `only ${kept.length} cases are left for such an engine`)
})

test('an engine that recovers leases by itself keeps the guarantees without a reaper', async () => {
  const results = await runCases(
    altered(() => memoryHarness(), selfRecovering),
    casesOf('port'),
  )
  assert.deepEqual(failed(results), [])
  const excused = results.filter((result) => result.status === 'excused' && /by itself/.test(result.sentence))
  assert.ok(excused.length > 0)
})

test('an engine that is excused and does not refuse fails the twin', async () => {
  const liars: Readonly<Record<string, () => Alteration>> = {
    'reaps although it declares that it recovers by itself': () => ({
      engine: (right) => ({ capabilities: { ...right.capabilities, recovery: 'engine' } }),
    }),
    'refuses repeated ids although it declares that it stores them again': () => ({
      engine: (right) => ({ capabilities: { ...right.capabilities, idempotentEnqueue: false } }),
    }),
  }
  for (const [lie, alter] of Object.entries(liars)) {
    const results = await runCases(
      altered(() => memoryHarness(), alter),
      casesOf('port'),
    )
    assert.notDeepEqual(failed(results), [], lie)
  }
})
