import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { presenceOf } from '../../src/engine/capability-checks.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import { runCli } from './in-process.ts'
import { jsonLines, temporaryFolder, until } from './run.ts'

async function store(t: TestContext) {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const mill = await open(url)
  t.after(() => mill.close())
  const cli = (...args: string[]) => runCli([...args, '--engine', url])
  return { mill, cli }
}

const bill = defineJob({ type: 'bill', concurrency: { max: 8 }, run: () => null })

/** Resolves when others can see it: a start waits for the first beat, but not for ever. */
async function startWorker(mill: Mill, concurrency = 10): Promise<void> {
  await mill.work([bill], { id: 'host:1:one', concurrency })
  await until(async () => (await mill.workers()).some(({ id }) => id === 'host:1:one'))
}

describe('pausing', () => {
  it('pauses a type and lets it go on, with who and why in the audit', async (t) => {
    const { mill, cli } = await store(t)
    await mill.enqueue(bill, null)
    const paused = await cli('pause', 'bill', '--reason', 'the bank is shut', '--who', 'ann')
    assert.deepEqual([paused.code, paused.out], [0, 'bill is paused; 1 ready\n'])
    assert.deepEqual(
      (await mill.paused()).map(({ type, who, reason }) => [type, who, reason]),
      [['bill', 'ann', 'the bank is shut']],
    )
    const again = await cli('pause', 'bill')
    assert.equal(again.code, 0)
    assert.match(again.out, /^bill was paused already, for .+ by ann: the bank is shut\n$/)
    assert.equal((await cli('resume', 'bill', '--who', 'bob')).out, 'bill is resumed\n')
    const [said] = jsonLines((await cli('resume', 'bill', '--json')).out)
    assert.equal(said?.resumed, false)
    const audit = jsonLines((await cli('audit', '--json')).out)
    assert.deepEqual(
      audit.map(({ action, who, type }) => [action, who, type]),
      [
        ['resume', 'bob', 'bill'],
        ['pause', 'ann', 'bill'],
      ],
    )
    assert.match((await cli('audit', '--action', 'pause')).out, /ann +pause +bill +the bank is shut/)
  })
})

describe('limits', () => {
  it('sets, lists and resets limits that a running worker takes up, with before and after in the audit', async (t) => {
    const { mill, cli } = await store(t)
    assert.equal((await cli('limits')).out, 'No limits were changed.\n')
    await startWorker(mill)
    const heeded = mill.events.next('worker.limited')
    const set = await cli(
      'limits',
      'set',
      'bill',
      '--concurrency',
      '5',
      '--rate',
      '10/90s',
      '--reason',
      'slow',
      '--who',
      'ann',
    )
    assert.deepEqual([set.code, set.out], [0, 'bill: concurrency 5, at most 10 starts in 90s\n'])
    assert.deepEqual((await heeded).types, [{ type: 'bill', concurrency: 5, limit: { max: 10, perMs: 90_000 } }])
    const again = await cli('limits', 'set', 'bill', '--rate', 'none')
    assert.equal(again.out, 'bill: concurrency 5, no rate limit (before: concurrency 5, at most 10 starts in 90s)\n')
    const sides = /bill +concurrency 5, no rate limit +concurrency 8 over all workers, no rate limit +\d+/
    assert.match((await cli('limits', 'list')).out, sides)
    const [listed] = jsonLines((await cli('limits', '--json')).out)
    assert.deepEqual([listed?.type, listed?.concurrency, listed?.limit], ['bill', 5, null])
    assert.deepEqual(listed?.defined, { concurrency: null, slots: { max: 8, by: null }, limit: null })
    await cli('limits', 'set', 'unknown', '--concurrency', '1')
    assert.match((await cli('limits')).out, /unknown +concurrency 1 +not known/)
    await cli('limits', 'reset', 'unknown')
    const dry = await cli('limits', 'reset', 'bill', '--dry-run')
    assert.equal(dry.out, 'would reset bill: concurrency 5, no rate limit\n')
    assert.equal((await cli('limits', 'reset', 'bill')).out, 'bill has the limits of its definition\n')
    assert.equal((await cli('limits', 'reset', 'bill')).out, 'the limits of bill were not changed\n')
    const audit = jsonLines((await cli('audit', '--json')).out).filter(({ type }) => type === 'bill')
    const [reset, , first] = audit
    assert.deepEqual([reset?.action, reset?.before], ['limits-reset', { concurrency: 5, limit: null }])
    assert.deepEqual([first?.who, first?.reason, first?.before], ['ann', 'slow', {}])
  })

  it('refuses what is no limit', async (t) => {
    const { cli } = await store(t)
    for (const flags of [['--rate', '10'], ['--rate', '0/1s'], ['--rate', '1/x'], ['--concurrency', '0'], []]) {
      assert.notEqual((await cli('limits', 'set', 'bill', ...flags)).code, 0, flags.join(' '))
    }
  })

  it('are a warning of the doctor while jobs wait for them', async (t) => {
    const { mill, cli } = await store(t)
    await mill.limits.set('bill', { concurrency: 1 }, { who: 'ann', reason: 'slow' })
    const ok = jsonLines((await cli('doctor', '--json')).out).find(({ subject }) => subject === 'limits')
    assert.equal(ok?.severity, 'ok')
    await mill.enqueue(bill, null)
    const { out } = await cli('doctor')
    assert.match(out, /warning +limits +'bill': concurrency 1, set by ann .+ ago: slow; 1 ready jobs wait/)
    assert.match(out, /→ .*millrace limits reset bill/)
  })
})

describe('workers', () => {
  it('lists those of other processes with what they run and how they are', async (t) => {
    const { mill, cli } = await store(t)
    assert.match((await cli('workers')).out, /^No workers\. /)
    await startWorker(mill, 4)
    await presenceOf(mill.engine).beat(
      [
        {
          ...{ type: 'mail', instance: 'host:1:gone', status: 'RUNNING', atMs: Date.now() - 90_000 },
          ...{ lastJobAtMs: null, lag: null, stoppingSinceMs: null },
        },
      ],
      1,
    )
    const workers = jsonLines((await cli('workers', '--json')).out)
    assert.deepEqual(
      workers.map(({ id, condition, concurrency }) => [id, condition, concurrency]),
      [
        ['host:1:gone', 'missing', null],
        ['host:1:one', 'idle', 4],
      ],
    )
    const { out } = await cli('workers')
    assert.match(out, /^WORKER +CONDITION +RUNS +UP +HEARD +LAST JOB +TYPES$/m)
    assert.match(out, /^host:1:one +idle +0\/4 .+ - +bill$/m)
    assert.match(out, /^host:1:gone → alert the operator/m)
  })
})

describe('health', () => {
  it('exits 1 when it is unhealthy, and says why', async (t) => {
    const { mill, cli } = await store(t)
    const alone = await cli('health')
    assert.equal(alone.code, 1)
    assert.match(alone.out, /^unhealthy +workers +0 running$/m)
    assert.match(alone.err, /ERR_UNHEALTHY/)
    const [found] = jsonLines((await cli('health', '--json')).out)
    assert.equal(found?.status, 'unhealthy')
    await startWorker(mill)
    const { code, out } = await cli('health', '--min-workers', '2')
    assert.equal(code, 0)
    assert.match(out, /^degraded +workers +1 running$/m)
    assert.equal((await cli('health', '--min-workers', '-1')).code, 2)
  })
})
