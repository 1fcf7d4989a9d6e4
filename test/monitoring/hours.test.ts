/**
 * The shipped rules about minutes and hours, from scrapes of a running system: `start` and `serve` on one SQLite file,
 * scraped over HTTP every minute. Their clock is a test clock; everything else is what the command line runs.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { z } from 'zod'
import { openDesk } from '../../src/desk/desk.ts'
import type { TypeCounts } from '../../src/engine/engine.ts'
import { defineJob, NonRetryable, type Worker } from '../../src/index.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { conversationRules } from '../../workloads/conversations/queue/alert-rules.ts'
import { temporaryFolder, until } from '../cli/run.ts'
import { type Clocked, ClockedStory, serveByTestClock } from './by-test-clock.ts'
import { skip } from './promtool.ts'
import { MILLRACE_RULES } from './recording.ts'

const engine = 'sqlite'
const here = [{ engine }]
const ann = { who: 'ann', reason: 'tried' }
const LIMIT_MS = 300_000
const CRITICAL = 'data-deletion'
/** How long an attempt of each type may take, in seconds. */
const BUDGETS = { other: 10, sanitize_ai_validation: 2, extract_learning: 5, mine_upload: 30 }

/** The payload says how long it runs, and whether it fails for good. */
const jobOf = (clock: TestClock, type: string) =>
  defineJob({
    ...{ type, critical: type === CRITICAL },
    payload: z.object({ seconds: z.number().default(0), fail: z.boolean().default(false) }),
    async run({ payload: { seconds, fail } }) {
      if (seconds > 0) await clock.sleep(seconds * 1_000)
      if (fail) throw new NonRetryable('as asked')
    },
  })
type Job = ReturnType<typeof jobOf>

class Scene extends ClockedStory {
  readonly jobs: readonly Job[]
  readonly start: Clocked
  readonly serve: Clocked
  readonly clock: TestClock
  readonly url: string

  constructor(clock: TestClock, url: string, jobs: readonly Job[], [start, serve]: readonly [Clocked, Clocked]) {
    super(clock, { rules: [MILLRACE_RULES], everySeconds: 60 })
    this.clock = clock
    this.url = url
    this.jobs = jobs
    this.start = start
    this.serve = serve
    Object.assign(this.targets, { start, serve })
  }

  job(type: string): Job {
    const found = this.jobs.find((job) => job.type === type)
    assert.ok(found, type)
    return found
  }

  /** Work needs real time too, so a scrape waits for it. */
  async until(type: string, state: keyof TypeCounts, count: number): Promise<void> {
    await until(async () => {
      await this.clock.advance(100)
      return ((await this.start.mill.counts())[type]?.[state] ?? 0) === count
    })
  }
}

async function sceneOn(t: TestContext): Promise<Scene> {
  const clock = new TestClock()
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const jobs = [...Object.keys(BUDGETS), 'plain', CRITICAL].map((type) => jobOf(clock, type))
  const options = { clock, jobs, alertRules: conversationRules() }
  const start = await serveByTestClock(t, url, options)
  return new Scene(clock, url, jobs, [start, await serveByTestClock(t, url, options)])
}

/** That many dead letters of the type, all in all. */
async function bury(scene: Scene, type: string, total: number): Promise<void> {
  const { mill } = scene.start
  const before = (await mill.counts())[type]?.dead ?? 0
  await mill.enqueueMany(scene.job(type), Array(total - before).fill({ fail: true }))
  await scene.until(type, 'dead', total)
  await scene.pass(1)
}

test('what the store holds, how jobs end and how long they take: each rule fires and clears', {
  skip,
  timeout: LIMIT_MS,
}, async (t) => {
  const scene = await sceneOn(t)
  const { start } = scene
  const { mill } = start
  const expect = (firing: Parameters<Scene['expect']>[0]) => scene.expect(firing, [start])
  let worker: Worker = await mill.work(scene.jobs)
  await scene.pass(15)
  await expect({})

  await t.test('dead letters', async () => {
    await bury(scene, 'plain', 1)
    await expect({ MillraceDeadLetters: here })
    await bury(scene, 'plain', 11)
    await expect({ MillraceDeadLetters: here, MillraceDeadLetterCount: here })
    await bury(scene, CRITICAL, 1)
    const MillraceCriticalDeadLetters = [{ engine, type: CRITICAL }]
    await expect({ MillraceDeadLetters: here, MillraceDeadLetterCount: here, MillraceCriticalDeadLetters })
    await bury(scene, 'plain', 99)
    const many = { MillraceDeadLettersTooMany: here, MillraceDeadLetterCount: here }
    await expect({ ...many, MillraceCriticalDeadLetters, MillraceSuccessRate: here })
    const desk = openDesk(mill, { jobs: scene.jobs })
    await desk.purge({}, ann, { force: true })
    await scene.pass(1)
    // They are resolved, but an hour of failures was an hour of failures.
    await expect({ MillraceSuccessRate: here })
  })

  await t.test('the latency of each type', async () => {
    const runs = async (share: number): Promise<void> => {
      for (const [type, seconds] of Object.entries(BUDGETS))
        await mill.enqueueMany(scene.job(type), Array(3).fill({ seconds: seconds * share }))
      await scene.pass(2)
    }
    await runs(0.6)
    await expect({ MillraceSuccessRate: here })
    await runs(1.2)
    const MillraceLatencyP95 = Object.keys(BUDGETS).map((type) => ({ engine, type }))
    await expect({ MillraceSuccessRate: here, MillraceLatencyP95 })
  })

  await t.test('the age of the queue, while the hour of failures and long runs ends', async () => {
    // Whoever else serves the store may be away.
    await scene.serve.close()
    scene.targets.serve = null
    const { id } = await mill.enqueue(defineJob({ type: 'nobody' }), null)
    await scene.pass(60)
    await expect({})
    await scene.pass(1)
    await expect({ MillraceQueueAge: here })
    await mill.cancel(id)
    await scene.pass(1)
    await expect({})
  })

  await t.test('the depth of the queue', async () => {
    await mill.enqueueMany(scene.job('plain'), Array(1_001).fill({}), { delay: '3m' })
    await scene.pass(1)
    await expect({ MillraceQueueDepth: here })
    await scene.pass(2)
    await scene.until('plain', 'completed', 1_001)
    await scene.pass(1)
    await expect({})
  })

  await t.test('the workers', async () => {
    const stopped = worker.stop()
    await scene.pass(1)
    await stopped
    await scene.pass(2)
    await expect({ MillraceNoWorkers: here })
    worker = await mill.work(scene.jobs, { keeper: false })
    await scene.pass(1)
    await expect({})
  })

  await t.test('the reaper', async () => {
    await scene.pass(10)
    await expect({ MillraceReaperSilent: here })
    // Another process keeps, and is scraped.
    const kept = await serveByTestClock(t, scene.url, { clock: scene.clock })
    scene.targets.keep = kept
    await kept.mill.keep({ jobs: scene.jobs })
    await scene.pass(2)
    await expect({})
  })

  await scene.judge()
})
