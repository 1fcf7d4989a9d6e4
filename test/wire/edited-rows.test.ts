import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { migrate } from '../../src/engines/postgres/module.ts'
import { defineJob, type JobView, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'

/** Id, the columns that were edited by hand, and what becomes of the row: its state, and the code of its error. */
const EDITED: readonly (readonly [id: string, columns: Readonly<Record<string, string>>, ends: string])[] = [
  ['payload-null', { payload: 'null' }, 'dead_letter ERR_PAYLOAD_INVALID'],
  ['payload-text', { payload: `'no json'` }, 'dead_letter ERR_PAYLOAD_NOT_JSON'],
  ['payload-other', { payload: `'[1, 2]'` }, 'dead_letter ERR_PAYLOAD_INVALID'],
  // For a worker that is newer than this one.
  ['version-unknown', { payload_version: '77' }, 'queued'],
  ['version-negative', { payload_version: '-1' }, 'completed'],
  ['attempts-negative', { attempt_count: '-5' }, 'completed'],
  ['attempts-used', { attempt_count: '99' }, 'dead_letter attempts_used'],
  ['limit-negative', { max_attempts: '-3' }, 'completed'],
  ['limit-huge', { max_attempts: '2147483647' }, 'completed'],
  ['due-in-antiquity', { run_at: `'-infinity'` }, 'completed'],
  ['due-never', { run_at: `'infinity'` }, 'queued'],
  ['created-never', { created_at: `'infinity'`, updated_at: `'-infinity'` }, 'completed'],
  ['options-text', { options: `'"text"'` }, 'completed'],
  ['options-timeout', { options: `'{"timeoutMs": "soon"}'` }, 'completed'],
  ['options-timeout-past', { options: `'{"timeoutMs": -5}'` }, 'completed'],
  ['options-backoff', { options: `'{"backoff": {"kind": "none"}}'` }, 'completed'],
  ['options-keep', { options: `'{"keepCompleted": "few"}'` }, 'completed'],
  ['fails-backoff', { options: `'{"backoff": 3}'`, payload: `'{"name":"fail"}'`, max_attempts: '2' }, 'dead_letter'],
  ['options-array', { options: `'[null, {}]'` }, 'completed'],
  ['tenant-number', { tenant: '7::text::json' }, 'completed'],
  ['token-left', { lease_token: `'old'`, locked_by: `'w9'`, lease_expires_at: 'now()' }, 'completed'],
  ['after-nonsense', { after: `'{"ids": 3}'` }, 'completed'],
  ['waits-for-less-than-none', { waiting_for: '-1' }, 'queued'],
]

test('rows edited by hand into nonsense end with a reason or run, and stop no worker', {
  timeout: 180_000,
}, async (t) => {
  const { url, schema } = schemaUrl(await postgresServer())
  await migrate(url, { clock: systemClock, migrate: true })
  t.after(() => dropSchema(url, schema))
  for (const [id, columns] of EDITED) {
    const given: Readonly<Record<string, string>> = {
      id: `'${id}'`,
      type: `'greet'`,
      payload: `'{"name":"Ada"}'`,
      ...columns,
    }
    await query(url, `insert into ${schema}.jobs (${Object.keys(given)}) values (${Object.values(given)})`)
  }
  const mill = await open(url)
  t.after(() => mill.close())
  const faults: string[] = []
  mill.events.on('worker.error', ({ during, error }) => faults.push(`${during}: ${error}`))
  const greet = defineJob({
    type: 'greet',
    payload: z.object({ name: z.string() }),
    run: ({ payload }) => {
      if (payload.name === 'fail') throw new Error('as asked')
      return `Hello, ${payload.name}`
    },
  })
  await mill.work([greet])
  const last = await mill.enqueue(greet, { name: 'Bob' }, { priority: 10 })
  assert.equal(await mill.result(last), 'Hello, Bob')
  const ends = async (): Promise<readonly string[]> => (await mill.jobs({ type: 'greet', limit: 100 })).map(describe)
  // What has run may still be on its way into the store, and what failed once runs once more.
  const isExpected = (end: string): boolean =>
    end.startsWith(last.id) || EDITED.some(([id, , expected]) => end === `${id} ${expected}`)
  for (const untilMs = Date.now() + 60_000; Date.now() < untilMs && !(await ends()).every(isExpected); )
    await systemClock.sleep(20)
  assert.deepEqual(
    (await ends()).filter((end) => !end.startsWith(last.id)).toSorted(),
    EDITED.map(([id, , end]) => `${id} ${end}`).toSorted(),
  )
  assert.deepEqual(faults, [])
  for (const [id] of EDITED) await mill.history(id)
})

function describe({ id, state, error }: JobView): string {
  return [id, state, error?.code].filter(Boolean).join(' ')
}
