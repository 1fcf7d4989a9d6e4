/** The excuses for what operators see and do: who is at work, what handlers say, and which types are held back. */
import assert from 'node:assert/strict'
import { limitStoreOf, logsOf, pausesOf, presenceOf } from '../src/engine/capability-checks.ts'
import { UnsupportedError } from '../src/errors.ts'
import { defineJob } from '../src/job/definition.ts'
import type { Excuse } from './case.ts'
import { refuses } from './needs.ts'
import type { Stage } from './stage.ts'

async function refusesCalls(stage: Stage, calls: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const call of calls) {
    await assert.rejects(call, (error) => error instanceof UnsupportedError && error.engine === stage.engine.name)
  }
}

export const presence: Excuse = {
  excuse: ({ records }) => (records !== undefined ? null : 'keeps no heartbeats of workers'),
  refusal: async (stage) => {
    assert.equal(stage.engine.records, undefined)
    refuses(() => presenceOf(stage.engine), stage)
    const mill = await stage.mill()
    // A store that knows its members lists them all the same.
    if (stage.engine.workers === undefined) await refusesCalls(stage, [() => mill.workers()])
    else assert.deepEqual(await mill.workers(), [])
  },
}

export const pausing: Excuse = {
  excuse: ({ records }) => (records !== undefined ? null : 'cannot pause a type'),
  refusal: async (stage) => {
    assert.equal(stage.engine.records, undefined)
    refuses(() => pausesOf(stage.engine), stage)
    const mill = await stage.mill()
    await refusesCalls(stage, [() => mill.pause(stage.type), () => mill.resume(stage.type), () => mill.paused()])
  },
}

export const limiting: Excuse = {
  excuse: ({ records }) => (records !== undefined ? null : 'cannot change the limits of a type while its workers run'),
  refusal: async (stage) => {
    assert.equal(stage.engine.records, undefined)
    refuses(() => limitStoreOf(stage.engine), stage)
    const { limits } = await stage.mill()
    const set = () => limits.set(stage.type, { concurrency: 1 })
    await refusesCalls(stage, [set, () => limits.reset(stage.type), () => limits.list()])
  },
}

export const logs: Excuse = {
  excuse: ({ logs: facet }) => (facet !== undefined ? null : 'keeps no logs of jobs'),
  refusal: async (stage) => {
    assert.equal(stage.engine.logs, undefined)
    refuses(() => logsOf(stage.engine), stage)
    const mill = await stage.mill()
    const definition = defineJob({ type: stage.type, backoff: { kind: 'fixed', delay: 0 }, run: () => null })
    await refusesCalls(stage, [() => mill.work([definition], { keepLogs: { lines: 10 } })])
  },
}
