import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { currentTenant } from '../../src/index.ts'
import { drain, openForTest } from '../../src/testing/index.ts'
import { BaseWorker, type HookedJob } from './index.ts'

describe('the tenant of a job', () => {
  // A60 X032
  test('is the context of its hooks and process, and undefined for a job without one', async () => {
    const seen: unknown[][] = []
    class Tenants extends BaseWorker<number> {
      async process(data: number): Promise<void> {
        await new Promise((resolve) => setImmediate(resolve))
        seen.push([data, 'process', this.tenantContext])
      }
      override async onStart({ data }: HookedJob): Promise<void> {
        await null
        seen.push([data, 'onStart', this.tenantContext])
      }
      override onComplete({ data }: HookedJob): void {
        seen.push([data, 'onComplete', this.tenantContext])
      }
    }
    await using stage = await openForTest()
    const { definition } = new Tenants('slack-sync')
    await stage.mill.enqueue(definition, 1, { tenant: { orgId: 'acme' } })
    await stage.mill.enqueue(definition, 2)
    await drain(stage.mill, [definition], { concurrency: 2 })
    assert.equal(seen.length, 6)
    for (const [data, , tenant] of seen) assert.deepEqual(tenant, data === 1 ? { orgId: 'acme' } : undefined)
  })

  // X033
  test('is taken from the data of a producer that put it there', async () => {
    const seen: unknown[] = []
    class Tenants extends BaseWorker {
      process(_data: unknown, job: HookedJob): void {
        seen.push(this.tenantContext, currentTenant(), job.tenant)
      }
      override onComplete(job: HookedJob): void {
        seen.push(this.tenantContext, job.tenant)
      }
    }
    await using stage = await openForTest()
    const { definition } = new Tenants('slack-sync')
    const tenantContext = { orgId: 'acme', workspaceId: 'w1' }
    await stage.mill.enqueue(definition, { tenantContext })
    await drain(stage.mill, [definition])
    assert.deepEqual(seen, Array(5).fill(tenantContext))
    seen.length = 0
    await stage.mill.enqueue(definition, { tenantContext: { orgId: 7 } })
    await drain(stage.mill, [definition])
    assert.deepEqual(seen, [undefined, null, null, undefined, null], 'what is no tenant is none')
  })

  // X033
  test('in the data does not make it invalid, also where the schema takes no other fields', async () => {
    const seen: unknown[] = []
    class Strict extends BaseWorker<unknown> {
      process(data: unknown): void {
        seen.push(data, this.tenantContext)
      }
    }
    await using stage = await openForTest()
    const tenantContext = { orgId: 'acme' }
    const own = z.strictObject({ room: z.string() })
    const strict = new Strict('slack-sync', { payload: own }).definition
    const aware = new Strict('data-export', { payload: own.extend({ tenantContext: z.looseObject({}) }) }).definition
    for (const definition of [strict, aware]) {
      await stage.mill.enqueue(definition, { room: 'a', tenantContext })
      await drain(stage.mill, [definition])
    }
    assert.deepEqual(seen, [{ room: 'a' }, tenantContext, { room: 'a', tenantContext }, tenantContext])
    for (const data of [
      { room: 7, tenantContext },
      { room: 'a', tenantContext, other: 1 },
      { room: 'a', tenantContext: 1 },
    ]) {
      await assert.rejects(stage.mill.enqueue(strict, data), { code: 'ERR_PAYLOAD_INVALID' })
    }
  })
})
