import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dropSchema, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { applyMigrations } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { connect } from './module.ts'

test('a record that is put again after it expired long ago stays, and others of its kind go', async (t) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await applyMigrations(url, { clock: systemClock, migrate: true })
  const engine = await connect(url, { clock: systemClock, migrate: false })
  t.after(async () => {
    await engine.close()
    await dropSchema(server.url, schema)
  })
  const { records } = engine
  assert.ok(records)
  const put = (...names: string[]) =>
    records.put(
      'worker',
      names.map((name) => ({ name, body: '{}' })),
      60_000,
    )
  await put('ann', 'bob')
  await query(server.url, `update ${schema}.millrace_records set expires_at = now() - interval '2 days'`)
  await put('ann')
  const left = (await records.list('worker')).map(({ name, leftMs }) => [name, (leftMs ?? 0) > 50_000])
  assert.deepEqual(left, [['ann', true]])
})
