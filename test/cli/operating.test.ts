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

const bill = defineJob({ type: 'bill', run: () => null })

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
