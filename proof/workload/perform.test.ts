import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Engine } from '../../src/engine/engine.ts'
import { openEngine } from '../../src/engine/open.ts'
import { replaced } from '../../src/testing/replaced.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { systemClock } from '../../src/time/clock.ts'
import { tempFiles } from '../../test/fixtures/temp-files.ts'
import { type PlayedHere, type PlayHere, playHere } from '../../test/proof/play-here.ts'
import { transactionsOf } from '../../test/proof/transactions.ts'
import { generate } from './generate.ts'
import type { PlannedJob, Program } from './operation.ts'

/** As if each view were of another process: closing one leaves the others open. */
async function sharedMemory(clock: TestClock): Promise<{ readonly engine: Engine; openView(): Promise<Engine> }> {
  const engine = await openEngine('memory:', { clock, migrate: true })
  const openView = async (): Promise<Engine> => replaced(engine, new Map([['close', async () => {}]]))
  return { engine, openView }
}

/** Advances the clock until it is over. */
async function onTestClock<Value>(clock: TestClock, work: Promise<Value>): Promise<Value> {
  let isOver = false
  const over = (): void => {
    isOver = true
  }
  work.then(over, over)
  while (!isOver) await clock.advance(25)
  return work
}

function assertClean({ isFinished, left, verdict }: PlayedHere): void {
  assert.deepEqual(verdict.violations, [])
  assert.ok(isFinished, `left: ${JSON.stringify(left)}`)
}

/** The program without these jobs. */
function without(isOut: (job: PlannedJob) => boolean): (program: Program) => Program {
  return (program) => ({
    ...program,
    clients: program.clients.map((operations) =>
      operations.map((operation) =>
        'jobs' in operation ? { ...operation, jobs: operation.jobs.filter((job) => !isOut(job)) } : operation,
      ),
    ),
  })
}

async function playInMemory(program: PlayHere['program']): Promise<PlayedHere> {
  const clock = new TestClock()
  const { engine, openView } = await sharedMemory(clock)
  const play = playHere({ openEngine: openView, clock, program, boundMs: 120_000 })
  try {
    return await onTestClock(clock, play)
  } finally {
    await engine.close()
  }
}

describe('a workload that is performed', { timeout: 300_000 }, () => {
  for (const seed of [1, 2, 3]) {
    test(`on memory and the test clock everything finishes, and the checker accepts its history (seed ${seed})`, async () => {
      const played = await playInMemory((abilities) => generate({ seed, abilities, jobs: 150, clients: 2, density: 6 }))
      assertClean(played)
      assert.ok(played.verdict.tally.starts > 150)
    })
  }

  test('is valid whatever is left out of it', async () => {
    const everySecond = without(({ n }) => n % 2 === 0)
    const half = (program: Program): Program => ({
      ...everySecond(program),
      clients: everySecond(program).clients.map((operations) => operations.filter((_, index) => index % 3 !== 1)),
    })
    assertClean(
      await playInMemory((abilities) => half(generate({ seed: 4, abilities, jobs: 150, clients: 2, density: 8 }))),
    )
  })

  test('on SQLite everything finishes, with transactions of the clients’ own', async () => {
    const url = `sqlite:${tempFiles().next()}`
    const begin = transactionsOf('sqlite', url)
    assert.ok(begin)
    const played = await playHere({
      openEngine: () => openEngine(url, { clock: systemClock, migrate: true }),
      clock: systemClock,
      begin,
      boundMs: 60_000,
      // An older worker leaves a newer payload for ten seconds: real ones here.
      program: (abilities) =>
        without((job) => job.version === 2)(
          generate({ seed: 5, abilities, jobs: 300, clients: 2, density: 2, hasTransactions: true, spanMs: 2_000 }),
        ),
    })
    assertClean(played)
    const ends = played.facts.history.flatMap((entry) => (entry.what === 'transaction' ? [entry.end] : []))
    assert.ok(ends.includes('committed') && ends.includes('rolled-back'), ends.join())
  })
})
