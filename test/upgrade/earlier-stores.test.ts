/** A store of every earlier schema, as that version wrote it, is upgraded: nothing is lost, and all of it goes on. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../../conformance/process/child.ts'
import { applyMigrations } from '../../src/engine/open.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import type { JobState } from '../../src/job/states.ts'
import { systemClock } from '../../src/time/clock.ts'
import { RECORDED } from './recorded.ts'
import type { Store } from './stores.ts'

const settings = { clock: systemClock, migrate: true }
const jobs = ['recorded', 'later'].map((type) => defineJob({ type, run: ({ payload }) => payload }))

async function statesOf(mill: Mill, ids: Iterable<string>): Promise<ReadonlyMap<string, JobState | undefined>> {
  const states = new Map<string, JobState | undefined>()
  for (const id of ids) states.set(id, (await mill.job(id))?.state)
  return states
}

async function assertGoesOn(store: Store, expected: ReadonlyMap<string, JobState>, version: number): Promise<void> {
  const mill = await open(store.url)
  try {
    const listed = new Set((await mill.jobs({ limit: 1_000 })).map(({ id }) => id))
    assert.deepEqual(
      [...expected.keys()].filter((id) => !listed.has(id)),
      [],
      'not listed',
    )
    const schema = (await mill.engine.diagnose?.({ deep: true }))?.filter(({ subject }) => subject === 'schema')
    assert.deepEqual(
      schema?.filter(({ severity }) => severity !== 'ok'),
      [],
    )
    const nightly = await mill.schedules.find('nightly')
    // The first packages had no schedules, and those of version 1 no pauses.
    if (nightly !== null || version > 1) assert.equal(nightly?.cron, '0 3 * * *')
    if (version > 1)
      assert.deepEqual(
        (await mill.paused()).map(({ type }) => type),
        ['paused'],
      )
    const worker = await mill.work(jobs, { reap: '100ms' })
    await eventually(
      async () => {
        const states = await statesOf(mill, expected.keys())
        return [...expected].every(([id, state]) => states.get(id) === state)
      },
      `the end of ${JSON.stringify([...expected])}`,
    )
    const dead = [...expected].flatMap(([id, state]) => (state === 'dead_letter' ? [id] : []))
    const done = await mill.engine.deadLetters?.requeue(dead, { who: 'ann', reason: 'upgraded' })
    assert.deepEqual(done, [true, true])
    await eventually(
      async () => [...(await statesOf(mill, dead)).values()].every((state) => state === 'completed'),
      'the replayed ones complete',
    )
    for (const id of dead) {
      const names = (await mill.engine.inspector?.history(id))?.map(({ name }) => name)
      assert.deepEqual(
        names?.filter((name) => name === 'dead' || name === 'replayed'),
        ['dead', 'replayed'],
      )
    }
    await worker.stop()
  } finally {
    await mill.close()
  }
}

describe('a store of an earlier schema is upgraded with all that is in it', { concurrency: 4 }, () => {
  for (const { name, version, expected, makeStore } of RECORDED) {
    test(name, async () => {
      const store = await makeStore()
      try {
        const [{ needed } = { needed: 0 }] = await store.rows<{ needed: number }>(
          'SELECT max(version) AS needed FROM millrace_schema',
        )
        assert.equal(needed, version)
        const plan = await applyMigrations(store.url, settings)
        assert.deepEqual([plan?.version, plan?.pending.length], [version, store.present - version])
        await assertGoesOn(store, expected, version)
      } finally {
        await store.remove()
      }
    })
  }
})
