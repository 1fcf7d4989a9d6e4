/** What a Millrace does on a store that a newer one has migrated: it works after an addition, and refuses what needs more. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../../conformance/process/child.ts'
import { pausesOf } from '../../src/engine/capability-checks.ts'
import type { Consumer, Engine } from '../../src/engine/engine.ts'
import { applyMigrations, openEngine, planMigrations } from '../../src/engine/open.ts'
import type { Lease, Outcome } from '../../src/engine/outcome.ts'
import { isMillraceError } from '../../src/errors.ts'
import { systemClock } from '../../src/time/clock.ts'
import { runCli } from '../cli/in-process.ts'
import { claimAll } from '../fixtures/claim.ts'
import { newJob } from '../fixtures/new-job.ts'
import { ADDITION, REMOVAL, STORES, type Store } from './stores.ts'

const settings = { clock: systemClock, migrate: true }
const COMPLETE: Outcome = { kind: 'complete', result: 'null', durationMs: 1 }
const DEAD: Outcome = { kind: 'dead', error: { name: 'Error', code: null, message: 'no', stack: null } }

const consume = (engine: Engine): Promise<Consumer> =>
  engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'host:1:old' })

const claimNow = (consumer: Consumer): Promise<readonly Lease[]> =>
  consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })

const isNewer = (error: unknown): boolean => isMillraceError(error, 'ERR_SCHEMA_NEWER')

const versionsOf = async (store: Store): Promise<readonly number[]> =>
  (await store.rows<{ version: number }>('SELECT version FROM millrace_schema ORDER BY abs(version)')).map(
    ({ version }) => version,
  )

/** Everything that a worker, a client and an operator do. */
async function useFully(engine: Engine): Promise<void> {
  const jobs = [newJob(), newJob({ key: newJob().id }), newJob({ latest: { key: 'l', seq: null } })]
  await engine.enqueue(jobs)
  const consumer = await consume(engine)
  const leases = await claimAll(consumer, 3)
  assert.deepEqual(await consumer.renew(leases, 60_000), [])
  const lost = await consumer.settle(leases.map((lease, n) => ({ lease, outcome: n === 0 ? DEAD : COMPLETE })))
  assert.deepEqual(lost, [])
  const dead = leases[0]?.job.id ?? ''
  const act = { who: 'ann', reason: 'test' }
  assert.deepEqual(await engine.deadLetters?.requeue([dead], act), [true])
  const again = await claimAll(consumer, 1)
  assert.deepEqual(await consumer.settle(again.map((lease) => ({ lease, outcome: COMPLETE }))), [])
  const found = await engine.inspector?.find(jobs.map(({ id }) => id))
  assert.deepEqual(
    found?.map((job) => job?.state),
    ['completed', 'completed', 'completed'],
  )
  assert.equal(await pausesOf(engine).pause('mail', act), true)
  assert.equal(await pausesOf(engine).resume('mail'), true)
  await engine.ping()
  await consumer.close()
}

for (const { name, makeStore } of STORES) {
  describe(`the versions of a store on ${name}`, () => {
    let store: Store
    let running: Engine
    before(async () => {
      store = await makeStore()
      await store.migrate()
      running = await openEngine(store.url, settings)
    })
    after(async () => {
      await running.close()
      await store.remove()
    })

    test('after an addition, processes that run and those that start work as before', async () => {
      await useFully(running)
      await store.migrate([ADDITION])
      assert.equal((await versionsOf(store)).at(-1), -(store.present + 1))
      await useFully(running)
      const started = await openEngine(store.url, settings)
      await useFully(started)
      const schema = (await started.diagnose?.({ deep: true }))?.filter(({ subject }) => subject === 'schema')
      assert.deepEqual(
        schema?.map(({ severity }) => severity),
        ['ok'],
      )
      await started.close()
    })

    test('its own migrations are not missing after an addition, and applying them or the addition again changes nothing', async () => {
      const plan = await planMigrations(store.url, settings)
      assert.deepEqual([plan?.version, plan?.latest, plan?.pending], [store.present + 1, store.present, []])
      const versions = await versionsOf(store)
      await applyMigrations(store.url, settings)
      await store.migrate([ADDITION])
      assert.deepEqual(await versionsOf(store), versions)
      const { out } = await runCli(['migrate', '--engine', store.url])
      const [later, own] = [store.present + 1, store.present]
      assert.match(out, new RegExp(`has version ${later}; this Millrace knows ${own} and can work with it`))
    })

    test('when a migration needs the addition, it starts no more work, settles what it holds, and is not opened', async () => {
      await running.enqueue([newJob(), newJob()])
      const consumer = await consume(running)
      const leases = await claimAll(consumer, 1)
      await store.migrate([ADDITION, REMOVAL])
      assert.deepEqual((await versionsOf(store)).slice(-3), [store.present, store.present + 1, -(store.present + 2)])
      const refused = (call: () => Promise<unknown>) => () => call().then(() => false, isNewer)
      await eventually(
        refused(() => running.enqueue([newJob()])),
        'the refusal of an enqueue',
      )
      assert.ok(await refused(() => claimNow(consumer))())
      assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: COMPLETE }))), [])
      await consumer.close()
      await assert.rejects(openEngine(store.url, settings), {
        code: 'ERR_SCHEMA_NEWER',
        message: new RegExp(`version ${store.present + 1}, this Millrace knows ${store.present}; upgrade Millrace`),
      })
      await assert.rejects(applyMigrations(store.url, settings), { code: 'ERR_SCHEMA_NEWER' })
    })
  })
}
