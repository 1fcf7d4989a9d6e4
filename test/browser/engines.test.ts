/** The same page on every engine: it shows what the engine can, and says what it cannot. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AnyJob, defineJob, type Mill, NonRetryable, type Worker } from 'millrace'
import { systemClock } from 'millrace/engine'
import type { Page } from 'playwright-core'
import { eventually } from '../../conformance/process/child.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { openTopicDesk } from '../../workloads/escrow/index.ts'
import { freshName, freshTopic, kafkaServer } from '../servers/kafka.ts'
import { dropSchema, postgresServer, schemaUrl } from '../servers/postgres.ts'
import { dropPrefix, prefixUrl, redisServer } from '../servers/redis.ts'
import { LIMIT_MS } from './browser.ts'
import { type Store, useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

const greet = defineJob({
  type: 'greet',
  run({ payload }) {
    if (payload === 'nobody') throw new NonRetryable('there is nobody to greet')
    return 'Hello'
  },
})

const ALL = ['Overview', 'Jobs', 'Dead letters', 'Queues', 'Workers', 'Schedules', 'Alerts', 'Audit']

/** One job completes and one dies. */
async function work(mill: Mill, job: AnyJob): Promise<Worker> {
  const worker = await mill.work([job])
  await mill.enqueueMany(job, ['Ada', 'nobody'])
  const counts = async () => (await mill.counts())[job.type]
  await eventually(async () => (await counts())?.dead === 1, 'a dead letter', LIMIT_MS)
  return worker
}

const pagesOf = (page: Page): Promise<string[]> =>
  page
    .getByRole('navigation', { name: 'Pages of the dashboard' })
    .getByRole('link')
    .locator('span:first-of-type')
    .allInnerTexts()

async function walk(page: Page): Promise<void> {
  await page.getByRole('row', { name: 'greet 0 0 0 1 1' }).waitFor()
  assert.deepEqual(await pagesOf(page), ALL)
  await page.getByRole('navigation').getByRole('link', { name: 'Jobs' }).click()
  await page.getByRole('row', { name: /^Dead letter .*there is nobody to greet/ }).waitFor()
  await page.getByRole('row', { name: /^Completed / }).waitFor()
  await page
    .getByRole('navigation')
    .getByRole('link', { name: /^Dead letters/ })
    .click()
  await page.getByRole('table').getByRole('link', { name: 'there is nobody to greet' }).click()
  await page.getByRole('heading', { name: 'Fix and replay' }).waitFor()
  await page.getByRole('listitem').filter({ hasText: 'Became a dead letter' }).waitFor()
}

const STORES: Readonly<Record<string, () => Promise<Store | undefined>>> = {
  memory: async () => ({ url: 'memory:', remove: () => {} }),
  sqlite: async () => undefined,
  async postgres() {
    const { url, schema } = schemaUrl(await postgresServer())
    await migrate(url, { clock: systemClock, migrate: true })
    return { url, remove: () => dropSchema(url, schema) }
  },
  async redis() {
    const { url, prefix } = prefixUrl(await redisServer())
    return { url, remove: () => dropPrefix(url, prefix) }
  },
}

for (const [name, storeFor] of Object.entries(STORES)) {
  test(`overview, jobs and dead letters on ${name}`, { timeout: 600_000 }, async (t) => {
    const store = await storeFor()
    const { mill, visit } = await serve(t, { jobs: [greet], ...(store !== undefined && { store }) })
    await work(mill, greet)
    await walk(await visit())
  })
}

// D12 D20
test('on Kafka: topics with their lag, and no page that the engine cannot fill', { timeout: 600_000 }, async (t) => {
  const broker = await kafkaServer()
  const topic = await freshTopic(broker, 'escrow.commands')
  const group = freshName('payout-executor')
  // With the engine's default session timeout: a browser beside it may slow this process down.
  const url = `${broker.url}?group=${group}&desk=${freshName('desk')}`
  const job = defineJob({ type: topic, attempts: 1, run: greet.run ?? (() => null) })
  // The prefix keeps the topics of other tests out of its lags.
  const operator = await openTopicDesk(`${url}&prefix=${topic}`)
  const topics = operator.watched(() => ({ warning: 2, critical: 50 }))
  const store = { url, remove: () => operator.close() }
  const { mill, visit } = await serve(t, { jobs: [job], store, over: () => ({ topics }) })
  const worker = await work(mill, job)
  const page = await visit()
  await page.getByRole('row', { name: new RegExp(`^${topic} `) }).waitFor()
  assert.deepEqual(await pagesOf(page), [
    'Overview',
    'Jobs',
    'Dead letters',
    'Queues',
    'Workers',
    'Topics',
    'Alerts',
    'Audit',
  ])
  await page.getByRole('navigation').getByRole('link', { name: 'Workers' }).click()
  await page.getByText('what it does is not known here').waitFor()
  assert.equal(await page.getByText(/Runs nothing|none yet/).count(), 0)
  await page
    .getByText('Holds 1 partition')
    .or(page.getByText(/Holds \d+ partitions/))
    .waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Jobs' }).click()
  await page
    .getByRole('row', { name: new RegExp(topic) })
    .first()
    .waitFor()
  await page
    .getByRole('navigation')
    .getByRole('link', { name: /^Dead letters/ })
    .click()
  await page.getByRole('table').getByRole('link', { name: 'there is nobody to greet' }).waitFor()
  // An address from another system's dashboard leads to a sentence, not to an error.
  await page.goto(page.url().replace(/#.*/, '#/schedules'))
  await page.getByText('The engine here, kafka, keeps no schedules').waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Topics' }).click()
  await page.getByRole('row', { name: new RegExp(`^Keeps up ${topic} ${group} 0`) }).waitFor()
  await worker.stop()
  await mill.enqueueMany(job, ['Ada', 'Bob', 'Cleo'])
  await page.getByRole('row', { name: new RegExp(`^Behind ${topic} ${group} 3`) }).waitFor()
})
