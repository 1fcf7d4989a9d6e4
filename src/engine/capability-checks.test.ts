import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newJob } from '../../test/fixtures/new-job.ts'
import { MemoryEngine } from '../engines/memory/index.ts'
import { UnsupportedError } from '../errors.ts'
import { defineJob } from '../job/definition.ts'
import type { Capabilities } from './capabilities.ts'
import {
  admitAgeing,
  admitDefinition,
  admitJob,
  admitTransaction,
  controlsOf,
  deadLettersOf,
  inspectorOf,
} from './capability-checks.ts'
import type { Engine } from './engine.ts'

const NOW_MS = Date.UTC(2026, 10, 15)
const HOUR_MS = 3_600_000

/** An engine like a log of records: it cannot delay, keep keys, supersede, limit or look up. */
function poorEngine(capabilities: Partial<Capabilities> = {}): Engine {
  const { name, threadUrl, ...methods } = new MemoryEngine()
  const poor: Capabilities = {
    ...new MemoryEngine().capabilities,
    enqueueDelayMaxMs: 0,
    retryDelayMaxMs: 300_000,
    keys: 'refused',
    latest: false,
    limits: 'refused',
    slots: 'refused',
    transactionalEnqueue: false,
    ...capabilities,
  }
  const facets = { inspector: undefined, controls: undefined, deadLetters: undefined }
  // Nothing here is called: the checks read data only. The facets are absent, as the capabilities say.
  return { ...methods, ...facets, name: 'poor', threadUrl, capabilities: poor } as unknown as Engine
}

const refusal = (limit: RegExp) => (error: unknown) =>
  error instanceof UnsupportedError &&
  error.engine === 'poor' &&
  (error.job === 'send' || error.job === 'greet') &&
  limit.test(error.message)

test('a definition whose retries would wait longer than the engine can is refused, with both figures', () => {
  const backoff = { kind: 'fixed', delay: '10m' } as const
  const job = defineJob({ type: 'send', backoff })
  assert.throws(() => admitDefinition(poorEngine(), job), refusal(/by 300000 ms at most.*asks for 600000 ms/))
  admitDefinition(poorEngine(), defineJob({ type: 'send', backoff, attempts: 1 }))
  admitDefinition(poorEngine(), defineJob({ type: 'send', backoff: { kind: 'fixed', delay: '5m' } }))
  admitDefinition(new MemoryEngine(), job)
})

test('a priority is refused where jobs are not claimed by it, and the default is not', () => {
  for (const order of ['per-key', 'fifo'] as const) {
    const engine = poorEngine({ order })
    const backoff = { kind: 'fixed', delay: 1 } as const
    assert.throws(
      () => admitDefinition(engine, defineJob({ type: 'send', backoff, priority: 1 })),
      refusal(/priorities/),
    )
    assert.throws(() => admitJob(engine, newJob({ type: 'send', priority: 6 }), NOW_MS), refusal(/type of their own/))
    admitDefinition(engine, defineJob({ type: 'send', backoff }))
    admitJob(engine, newJob({ type: 'send' }), NOW_MS)
  }
  for (const order of ['priority', 'ageing-priority'] as const)
    admitJob(poorEngine({ order }), newJob({ type: 'send', priority: 1 }), NOW_MS)
})

// A75
test('a rate limit is refused where it could not hold over all workers', () => {
  const job = defineJob({ type: 'send', backoff: { kind: 'fixed', delay: 1 }, limit: { max: 1, per: '1s' } })
  assert.throws(() => admitDefinition(poorEngine(), job), refusal(/rate limit/))
  admitDefinition(new MemoryEngine(), job)
})

test('concurrency over all workers is refused where nobody counts them, with what to do', () => {
  for (const concurrency of [{ max: 1 }, { max: 1, by: 'tenant' }] as const) {
    const job = defineJob({ type: 'send', backoff: { kind: 'fixed', delay: 1 }, concurrency })
    assert.throws(() => admitDefinition(poorEngine(), job), refusal(/cannot count .* give 'concurrency' a number/))
    admitDefinition(new MemoryEngine(), job)
  }
})

test('a delay beyond what the engine can is refused, given as a delay or as a date', () => {
  const hour = poorEngine({ enqueueDelayMaxMs: HOUR_MS })
  const refused = refusal(/delays a job by 3600000 ms at most/)
  assert.throws(() => admitJob(hour, newJob({ delayMs: HOUR_MS + 1 }), NOW_MS), refused)
  assert.throws(() => admitJob(hour, newJob({ runAtMs: NOW_MS + HOUR_MS + 1 }), NOW_MS), refused)
  admitJob(hour, newJob({ delayMs: HOUR_MS }), NOW_MS)
  admitJob(hour, newJob({ runAtMs: NOW_MS + HOUR_MS }), NOW_MS)
})

test('an engine that cannot delay at all says so, and takes a date that has passed', () => {
  assert.throws(() => admitJob(poorEngine(), newJob({ delayMs: 1 }), NOW_MS), refusal(/cannot delay a job/))
  assert.throws(() => admitJob(poorEngine(), newJob({ runAtMs: NOW_MS + 1 }), NOW_MS), refusal(/cannot delay a job/))
  admitJob(poorEngine(), newJob({ runAtMs: NOW_MS }), NOW_MS)
})

test('keys and latest keys are refused where they would mean nothing', () => {
  const latest = { key: 'k', seq: null }
  assert.throws(() => admitJob(poorEngine(), newJob({ key: 'k' }), NOW_MS), refusal(/keeps no idempotency keys/))
  assert.throws(() => admitJob(poorEngine(), newJob({ latest }), NOW_MS), refusal(/does not supersede/))
  admitJob(new MemoryEngine(), newJob({ key: 'k' }), NOW_MS)
  admitJob(new MemoryEngine(), newJob({ latest }), NOW_MS)
})

// X119
test('ageing is refused where only strict priority is kept, or none, with what to do', () => {
  for (const order of ['priority', 'per-key', 'fifo'] as const) {
    assert.throws(
      () => admitAgeing(poorEngine({ order })),
      (error) =>
        error instanceof UnsupportedError && /poor engine cannot raise jobs.*leave out 'ageing'/.test(error.message),
    )
  }
  admitAgeing(new MemoryEngine())
})

test('an absent facet is refused, never answered with nothing', () => {
  const poor = poorEngine()
  for (const ask of [inspectorOf, controlsOf, deadLettersOf, admitTransaction]) {
    assert.throws(() => ask(poor), UnsupportedError, ask.name)
  }
  const memory = new MemoryEngine()
  assert.equal(inspectorOf(memory), memory.inspector)
  assert.equal(controlsOf(memory), memory.controls)
  assert.equal(deadLettersOf(memory), memory.deadLetters)
})
