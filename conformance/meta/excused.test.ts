/** Tests of the excuses: engines that can do less must be excused, and their refusals must be looked at. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Capabilities } from '../../src/engine/capabilities.ts'
import type { Consumer, Engine } from '../../src/engine/engine.ts'
import { UnsupportedError } from '../../src/errors.ts'
import { type Alteration, altered } from '../alter.ts'
import { memoryHarness } from '../engines/memory.ts'
import * as needs from '../needs.ts'
import * as operations from '../operations.ts'
import { type CaseResult, runCases } from '../run.ts'
import { never, retry } from '../stage.ts'
import { casesOf } from '../table.ts'

const cases = [...casesOf('port'), ...casesOf('client'), ...casesOf('process')]

/** An engine that promises nothing but to store a job and to hand it out. */
const LEAST: Capabilities = {
  survives: 'nothing',
  settle: 'watermark',
  attempts: 'in-process',
  recovery: 'none',
  recoveryMaxMs: null,
  enqueueDelayMaxMs: 0,
  retryDelayMaxMs: 0,
  order: 'none',
  keys: 'refused',
  latest: false,
  idempotentEnqueue: false,
  enqueueAtomic: false,
  transactionalEnqueue: false,
  limits: 'refused',
  deadLetters: 'none',
  inspection: false,
  cancellation: false,
  dependencies: false,
  schedules: false,
  leadership: false,
  retention: false,
  presence: false,
  pausing: false,
  diagnosis: false,
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

const least = (): Alteration => ({
  engine: (right) => ({ capabilities: LEAST, enqueue: appending(right) }),
  without: ['inspector', 'controls', 'deadLetters', 'retention', 'schedules', 'leadership', 'presence', 'pauses'],
  consumer: refusesExpired,
})

/** An engine that brings expired leases back by itself, before it hands out anything. */
const selfRecovering = (): Alteration => ({
  engine: (right) => ({ capabilities: { ...right.capabilities, recovery: 'engine', recoveryMaxMs: 0 } }),
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
  const all = [...Object.values(needs), ...Object.values(operations)]
  const expected = all.flatMap((need) => (typeof need === 'object' ? [need.excuse(LEAST)] : []))
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
    'looks up jobs although it declares that it cannot': () => ({
      engine: (right) => ({ capabilities: { ...right.capabilities, inspection: false } }),
    }),
    'examines its store although it declares that it cannot': () => ({ engine: () => ({ diagnose: async () => [] }) }),
    'cancels although it declares that it cannot': () => ({
      engine: (right) => ({ capabilities: { ...right.capabilities, cancellation: false } }),
    }),
    'reaps although it declares that it recovers by itself': () => ({
      engine: (right) => ({ capabilities: { ...right.capabilities, recovery: 'engine' } }),
    }),
    'puts dead letters back although it declares that it cannot': () => ({
      engine: (right) => ({ capabilities: { ...right.capabilities, deadLetters: 'append-only' } }),
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
