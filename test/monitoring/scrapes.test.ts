/** What `work`, `serve` and `start` say of themselves, scraped from processes: the same store, the same signs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { JOBS, startMillrace, until } from '../cli/run.ts'
import { sampleValue } from '../fixtures/exposition.ts'
import { lint, skip } from './promtool.ts'
import { addressOf, kafkaStore, STORES, textOf } from './stores.ts'

const greet = defineJob({ type: 'greet' })
/** Processes and a broker start meanwhile, and the first test that needs the broker may fetch it. */
const LIMIT_MS = 600_000
/** The figures rest longer where counting takes longer. */
const FIGURES_MS = 240_000

/** Kafka has no priorities, which the job `greet` has. */
const TYPE = 'doomed'
const TYPES = [TYPE]

for (const [name, store] of Object.entries(STORES)) {
  describe(`work and serve on ${name}`, { skip, timeout: LIMIT_MS }, () => {
    test('tell of one worker, of its jobs and how long they take, in names that promtool accepts', async (t) => {
      const url = await store(t, TYPES)
      const mill = await open(url)
      t.after(() => mill.close())
      const shared = ['--engine', url, '--json']
      const server = startMillrace(t, ['serve', ...shared, '--port', '0'])
      const serve = await addressOf(server)
      assert.equal(sampleValue(await textOf(`${serve}/metrics`), 'millrace_worker_instances'), 0)
      const worker = startMillrace(t, ['work', JOBS, ...shared, '--metrics-port', '0'])
      const work = await addressOf(worker)
      const points = async (): Promise<Record<string, number | null>[]> =>
        JSON.parse(await textOf(`${serve}/api/v1/history`)).points
      // Until a step has seen some of them: they keep coming meanwhile.
      await until(async () => {
        await mill.enqueue(greet, { name: 'Ada' })
        const seen = await points()
        const isCompleted = seen.some((point) => Number(point.completedPerSecond) > 0 && point.durationP95Ms !== null)
        return isCompleted && seen.some((point) => Number(point.enqueuedPerSecond) > 0)
      }, FIGURES_MS)
      const [ofServe, ofWork] = [await textOf(`${serve}/metrics`), await textOf(`${work}/metrics`)]
      for (const scrape of [ofServe, ofWork]) {
        assert.equal(sampleValue(scrape, 'millrace_worker_instances'), 1)
        assert.equal(lint(scrape), '')
      }
      assert.ok(Number(sampleValue(ofWork, 'millrace_jobs_completed_total', { type: 'greet' })) > 0)
      assert.equal(sampleValue(ofServe, 'millrace_reaper_pass_duration_seconds_count'), null, 'it has no reaper')
      assert.notEqual(sampleValue(ofWork, 'millrace_reaper_pass_duration_seconds_count'), null)
      // A ping that takes 100 ms, as it may on a busy machine, is degraded.
      await until(async () => (await healthOf(work)).body.status === 'healthy')
      const { status, body } = await healthOf(work)
      assert.deepEqual([status, body.details.activeWorkers], [200, 1])
      worker.child.kill('SIGTERM')
      assert.equal((await worker.ended).code, 0)
      await until(
        async () => sampleValue(await textOf(`${serve}/metrics`), 'millrace_worker_instances') === 0,
        FIGURES_MS,
      )
    })
  })
}

async function healthOf(address: string) {
  const response = await fetch(`${address}/health`)
  return { status: response.status, body: JSON.parse(await response.text()) }
}

for (const [name, store] of Object.entries({ ...STORES, kafka: kafkaStore })) {
  test(`start on ${name} tells of its worker in names that promtool accepts`, {
    skip,
    timeout: LIMIT_MS,
  }, async (t) => {
    const url = await store(t, TYPES)
    const running = startMillrace(t, ['start', JOBS, '--types', TYPE, '--engine', url, '--json', '--port', '0'])
    const address = await addressOf(running)
    await until(
      async () => sampleValue(await textOf(`${address}/metrics`), 'millrace_worker_instances') === 1,
      FIGURES_MS,
    )
    const scrape = await textOf(`${address}/metrics`)
    assert.equal(lint(scrape), '')
    // Where nobody keeps heartbeats, nobody has lost them: 0 would be an alert.
    assert.equal(sampleValue(scrape, 'worker_presence_up'), name === 'kafka' ? null : 1)
  })
}

test('work and serve on kafka have names that promtool accepts', { skip, timeout: LIMIT_MS }, async (t) => {
  const shared = ['--engine', await kafkaStore(t, TYPES), '--json']
  const worker = startMillrace(t, ['work', JOBS, '--types', TYPE, ...shared, '--metrics-port', '0'])
  const server = startMillrace(t, ['serve', ...shared, '--port', '0'])
  const [work, serve] = [await addressOf(worker), await addressOf(server)]
  await until(async () => sampleValue(await textOf(`${work}/metrics`), 'millrace_worker_instances') === 1, FIGURES_MS)
  for (const address of [work, serve]) assert.equal(lint(await textOf(`${address}/metrics`)), '')
  // The store has no heartbeats there, so the members of the group are counted.
  for (const address of [work, serve]) {
    await until(
      async () => sampleValue(await textOf(`${address}/metrics`), 'millrace_worker_instances') === 1,
      FIGURES_MS,
    )
    await until(async () => (await healthOf(address)).body.details.activeWorkers === 1, FIGURES_MS)
  }
})
