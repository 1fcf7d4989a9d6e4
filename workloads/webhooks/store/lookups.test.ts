import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { storeRig } from '../../../test/fixtures/webhooks.ts'
import { WORKLOAD_PLACES } from '../../../test/fixtures/workload-places.ts'
import type { WorkloadDatabase } from '../../database/database.ts'
import { Lookups } from './lookups.ts'

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`lookups on ${name}`, () => {
    const rig = storeRig(makePlace)

    test('the endpoints and earlier records of all jobs that start together are one statement', async () => {
      const endpoints = [await rig.add(), await rig.add(), await rig.add()]
      const ids = endpoints.map(({ id }) => id)
      const { repository } = rig.webhooks
      const about = { webhookId: ids[0] ?? '', latencyMs: 5 }
      await repository.recordOutcome({ ...about, jobId: 'tried', status: 'failed', token: '1' })
      await repository.recordOutcome({ ...about, jobId: 'tried', status: 'failed', token: '2' })
      await repository.recordOutcome({ ...about, jobId: 'done', status: 'failed', token: '1' })
      await repository.recordOutcome({ ...about, jobId: 'done', status: 'success', statusCode: 204, token: '2' })
      await repository.recordOutcome({ ...about, deliveryId: 'done', jobId: 'again', status: 'failed' })
      let statements = 0
      const database: WorkloadDatabase = Object.create(rig.tables, {
        read: {
          value: (sql: string, values: readonly string[]) => {
            statements += 1
            return rig.tables.read(sql, values)
          },
        },
      })
      const lookups = new Lookups(database, rig.clock)
      const [found, priors] = await Promise.all([
        Promise.all([...ids, 'unknown', 'with NUL \0'].map((id) => lookups.endpoint(id))),
        Promise.all([
          ...['new', 'tried', 'done'].map((deliveryId) => lookups.prior({ deliveryId })),
          ...['again', 'other'].map((jobId) => lookups.prior({ deliveryId: 'done', jobId })),
        ]),
      ])
      assert.equal(statements, 1)
      assert.deepEqual(
        found.map((webhook) => webhook?.secrets),
        [...endpoints.map(({ secret }) => [secret]), undefined, undefined],
      )
      const untried = { success: null, hasFailed: false }
      const failed = { success: null, hasFailed: true }
      const done = { success: { statusCode: 204, latencyMs: 5 }, hasFailed: false }
      assert.deepEqual(priors, [untried, failed, done, failed, untried])
    })
  })
}
