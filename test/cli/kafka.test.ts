/** What operators see and do on Kafka, from outside: two workers in processes of their own, and the commands beside them. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { open } from 'millrace'
import { createTopic, freshName, groupOffsets, kafkaServer, withParameters } from '../servers/kafka.ts'
import { startRedis } from '../servers/redis.ts'
import { held, other } from './fixtures/kafka-jobs.ts'
import { runCli } from './in-process.ts'
import { FIXTURES, jsonLines, millrace, startMillrace, temporaryFolder, until } from './run.ts'

const MODULE = join(FIXTURES, 'kafka-jobs.ts')

interface ShownWorker {
  readonly id: string
  readonly condition: string
  readonly host: string
  readonly pid: number | null
  readonly types: readonly {
    readonly type: string
    /** Missing while its heartbeats are known and its membership is not. */
    readonly holds?: readonly { readonly partition: number; readonly lag: number }[]
  }[]
}

test('two worker processes on Kafka are listed, watched, paused and resumed by commands', {
  timeout: 300_000,
}, async (t) => {
  const [server, redis, folder] = [await kafkaServer(), await startRedis(), await temporaryFolder(t)]
  t.after(() => redis.end())
  const [prefix, group] = [`${freshName('cli')}.`, freshName('group')]
  // Four partitions for each of the two: both have some of the first.
  const sizes = { held: 6, other: 2 }
  for (const [type, partitions] of Object.entries(sizes)) await createTopic(server, prefix + type, partitions)
  const url = withParameters(server, `group=${group}&prefix=${prefix}&session=60000&heartbeat=200`)
  const engine = ['--engine', url]
  const shared = [...engine, '--presence', redis.url]
  const workers = [0, 1].map(() => startMillrace(t, ['work', MODULE, '--poll', '200ms', ...shared]))
  const mill = await open(url)
  t.after(() => mill.close())

  const list = async (args: readonly string[]): Promise<readonly ShownWorker[]> => {
    const { code, out, err } = await runCli(['workers', '--json', ...args])
    assert.deepEqual([code, err], [0, ''])
    return jsonLines(out) as unknown as readonly ShownWorker[]
  }
  const partitionsOf = (shown: readonly ShownWorker[], type: string): readonly number[] =>
    shown.flatMap(({ types }) =>
      types.filter((one) => one.type === type).flatMap(({ holds = [] }) => holds.map((one) => one.partition)),
    )
  const isShared = (shown: readonly ShownWorker[]): boolean =>
    shown.length === 2 &&
    shown.every(({ pid, types }) => pid !== null && types.flatMap(({ holds = [] }) => holds).length === 4)
  const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, nth) => nth)
  await until(async () => isShared(await list(shared)))

  await t.test(
    'members are listed with host, partitions and lag; with a presence with their heartbeats too',
    async () => {
      const [beating, members] = [await list(shared), await list(engine)]
      for (const shown of [beating, members])
        for (const [type, partitions] of Object.entries(sizes))
          assert.deepEqual(partitionsOf(shown, type).toSorted(), numbers(partitions), `${type} is not held once`)
      assert.deepEqual(
        beating.map(({ id }) => id),
        members.map(({ id }) => id),
        'a member and its heartbeats are one worker',
      )
      assert.deepEqual(new Set(beating.map(({ pid }) => pid)), new Set(workers.map(({ child }) => child.pid)))
      assert.deepEqual(
        members.map(({ host, condition }) => [host, condition]),
        Array(2).fill(['127.0.0.1', 'running']),
      )
      const { out } = await runCli(['workers', ...engine])
      assert.match(out, /^WORKER +CONDITION .* HOST +LAG +HOLDS$/m)
      assert.match(out, /127\.0\.0\.1 +0 +held \d.*; other [\d-]/)
    },
  )

  const lines = async (name: string): Promise<readonly number[]> => {
    const text = await readFile(join(folder, name), 'utf8').catch(() => '')
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map(Number)
  }
  const add = (job: typeof held, count: number, from = 0): Promise<unknown> =>
    mill.enqueueMany(
      job,
      Array.from({ length: count }, (_, nth) => ({ file: join(folder, job.type), nth: from + nth })),
    )

  await t.test('top tells lag, members and the rates of the log and of the group', async () => {
    const top = startMillrace(t, ['top', '--json', '--interval', '300ms', ...engine])
    await top.said('\n')
    await add(held, 40)
    await until(async () => (await lines('held')).length === 40)
    const looks = () =>
      jsonLines(top.output.slice(0, top.output.lastIndexOf('\n'))) as unknown as readonly {
        readonly types: readonly {
          type: string
          lag?: number
          rates: { enqueued: number; completed: number } | null
          counts: { completed: number }
        }[]
        readonly members: readonly { readonly id: string; readonly host: string }[]
      }[]
    const ofHeld = () => looks().flatMap(({ types }) => types.filter(({ type }) => type === 'held'))
    await until(() => ofHeld().at(-1)?.counts.completed === 40 && ofHeld().at(-1)?.lag === 0)
    top.child.kill('SIGINT')
    assert.equal((await top.ended).code, 0)
    assert.ok(
      ofHeld().some(({ rates }) => (rates?.enqueued ?? 0) > 0),
      'a rate of what was written',
    )
    assert.ok(
      ofHeld().some(({ rates }) => (rates?.completed ?? 0) > 0),
      'a rate of what was settled',
    )
    assert.deepEqual(
      looks()
        .at(-1)
        ?.members.map(({ host }) => host),
      ['127.0.0.1', '127.0.0.1'],
    )
    const { out } = await runCli(['top', ...engine])
    assert.match(out, /^TYPE +READY +DELAYED +RUNNING +COMPLETED +DEAD +LAG +IN\/S +DONE\/S$/m)
    assert.match(out, /^Workers: 2\n {2}\S+ on 127\.0\.0\.1: held [\d,-]+; other [\d,-]+, 0 behind$/m)
  })

  await t.test('a pause holds the type back in both processes, and nothing is lost or doubled by it', async () => {
    const refused = await runCli(['pause', 'held', ...engine])
    assert.equal(refused.code, 2)
    assert.match(refused.err, /the kafka engine cannot pause a type; .*--presence redis:\/\//)
    const committed = async () =>
      (await groupOffsets(server, group)).filter(({ topic }) => topic === `${prefix}held`).map(({ offset }) => offset)
    await until(async () => (await committed()).reduce((sum, offset) => sum + offset, 0n) === 40n)
    const before = await committed()
    const paused = await millrace(['pause', 'held', '--reason', 'the provider is down', ...shared])
    assert.deepEqual([paused.code, paused.err], [0, ''])
    for (const worker of workers) await worker.said(/paused/i)
    await add(held, 40, 40)
    await add(other, 20)
    await until(async () => (await lines('other')).length === 20)
    assert.equal((await lines('held')).length, 40, 'a job of the paused type was started')
    const lags = (await list(shared)).flatMap(({ types }) =>
      types.filter(({ type }) => type === 'held').flatMap(({ holds = [] }) => holds.map(({ lag }) => lag)),
    )
    assert.equal(
      lags.reduce((sum, lag) => sum + lag, 0),
      40,
      'the lag grows',
    )
    assert.deepEqual(await committed(), before, 'something was committed')

    const [newest] = jsonLines((await runCli(['jobs', '--type', 'held', '--limit', '1', '--json', ...shared])).out)
    assert.equal(newest?.state, 'queued')
    const [why] = jsonLines((await runCli(['explain', String(newest?.id), '--json', ...shared])).out)
    assert.equal(why?.because, 'paused')
    assert.match(String(why?.text), /the provider is down/)
    const health = await runCli(['health', ...shared])
    assert.equal(health.code, 0, health.out + health.err)

    const resumed = await millrace(['resume', 'held', ...shared])
    assert.deepEqual([resumed.code, resumed.out], [0, 'held is resumed\n'])
    await until(async () => (await lines('held')).length >= 80)
    await until(async () =>
      (await list(engine)).every(({ types }) => types.every(({ holds = [] }) => holds.every(({ lag }) => lag === 0))),
    )
    assert.deepEqual(
      (await lines('held')).toSorted((a, b) => a - b),
      numbers(80),
    )
    assert.deepEqual(
      (await lines('other')).toSorted((a, b) => a - b),
      numbers(20),
    )
  })

  await t.test('jobs pages through the records, and job shows the one at a place', async () => {
    const ids: unknown[] = []
    for (let before: readonly string[] = []; ; ) {
      const { code, out, err } = await runCli([
        'jobs',
        '--type',
        'held',
        '--limit',
        '30',
        '--json',
        ...before,
        ...engine,
      ])
      assert.deepEqual([code, err], [0, ''])
      const page = jsonLines(out)
      assert.ok(page.every(({ state }) => state === 'completed'))
      ids.push(...page.map(({ id }) => id))
      if (page.length < 30) break
      before = ['--before', String(ids.at(-1))]
    }
    assert.deepEqual([ids.length, new Set(ids).size], [80, 80])
    const shown = await runCli(['job', `${prefix}held/0/0`, '--payload', ...engine])
    assert.equal(shown.code, 0)
    assert.match(shown.out, /^It was completed\.$/m)
    assert.match(shown.out, /^attempt +- of 3$/m)
    assert.match(shown.out, /^payload +\{"file"/m)
    const refused = await runCli(['jobs', '--status', 'completed', ...engine])
    assert.equal(refused.code, 2)
    assert.match(refused.err, /cannot list records by the state 'completed'; list without one/)
    const unknown = await runCli(['job', `${prefix}held/9/9`, ...engine])
    assert.match(unknown.err, /ERR_JOB_UNKNOWN/)
  })

  for (const worker of workers) worker.child.kill('SIGTERM')
  for (const worker of workers) assert.equal((await worker.ended).code, 0)
  assert.deepEqual(await list(engine), [])
})

test('start without jobs serves on Kafka until it is stopped, and what would do nothing there is refused', async (t) => {
  const server = await kafkaServer()
  const engine = ['--engine', withParameters(server, `group=${freshName('group')}`)]
  for (const args of [['keep'], ['keep', '--metrics-port', '0'], ['start', '--no-http']]) {
    const { code, err } = await millrace([...args, ...engine])
    assert.equal(code, 2, `${args.join(' ')}: ${err}`)
    assert.match(err, /the kafka engine has nothing for a keeper to do/)
  }
  const running = startMillrace(t, ['start', '--port', '0', '--json', ...engine])
  await running.said('Keeper stopped')
  const [, url = ''] = /"url":"([^"]+)"/.exec(running.output) ?? []
  assert.equal((await fetch(`${url}/health/live`)).status, 200)
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 0)
})
