/** The dead-letter endpoints on a real broker: what an operator does to dead letters, and what stays of it. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { MillraceError } from '../../src/errors.ts'
import { systemClock } from '../../src/time/clock.ts'
import { openTopicDesk } from '../../workloads/escrow/index.ts'
import {
  createTopic,
  endOffsets,
  freshName,
  type KafkaServer,
  kafkaServer,
  startOffsets,
  withAdmin,
} from '../servers/kafka.ts'
import { ann, stageDesk } from './desk-stage.ts'
import { eventually, produce } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

const coded =
  (code: string, text = /./) =>
  (error: unknown): boolean =>
    error instanceof MillraceError && error.code === code && text.test(error.message)

// D48 D49 D51 D52 X146 X148 X150
test('what was replayed and discarded stays so for every desk, after a restart too, and the audit lists all of it', async (t) => {
  const stage = await stageDesk(t, server)
  await stage.bury(['a', 'b', 'c'])
  const first = await stage.openDesk()
  const { letters } = await first.list({ topic: stage.topic })
  assert.deepEqual(
    letters.map(({ offset, state, envelope }) => [offset, state, envelope.original_key, envelope.consumer_group]),
    ['a', 'b', 'c'].map((key, offset) => [offset, 'pending', key, stage.group]),
  )
  assert.deepEqual(JSON.parse(JSON.stringify(letters)), letters, 'it is plain JSON')
  const replayed = await first.replay({ topic: stage.topic, offset: 0 }, ann)
  assert.deepEqual([replayed.dryRun, replayed.letter.state, replayed.letter.stateBy], [false, 'replayed', ann])
  await first.discard({ topic: stage.dlq, offset: '1', partition: 0 }, { who: 'bob', reason: 'a test order' })
  await first.close()
  const second = await stage.openDesk()
  const states = (await second.list({ topic: stage.dlq, state: 'every' })).letters.map(({ state }) => state)
  assert.deepEqual(states, ['replayed', 'discarded', 'pending'])
  assert.deepEqual(await second.pending({ topic: stage.topic }), { pending: 1 })
  for (const offset of [0, 1]) {
    await assert.rejects(
      second.replay({ topic: stage.topic, offset }, ann),
      coded('ERR_STATE_TRANSITION', /was (replay|discard)ed by/),
    )
    await assert.rejects(second.discard({ topic: stage.topic, offset }, ann), coded('ERR_STATE_TRANSITION'))
  }
  const { entries } = await second.audit()
  assert.deepEqual(
    entries.map(({ action, who, reason, group, topic, letter }) => [
      action,
      who,
      reason,
      group,
      topic,
      letter?.topic,
      letter?.offset,
    ]),
    [
      ['discard', 'bob', 'a test order', stage.group, stage.topic, stage.dlq, 1],
      ['replay', ann.who, ann.reason, stage.group, stage.topic, stage.dlq, 0],
    ],
  )
  assert.deepEqual((await second.audit({ who: 'bob' })).entries, entries.slice(0, 1))
  assert.deepEqual((await second.audit({ topic: stage.topic, before: entries[0]?.seq ?? 0 })).entries, entries.slice(1))
  assert.deepEqual((await second.audit({ topic: 'elsewhere' })).entries, [])
  assert.deepEqual([await endOffsets(server, stage.dlq), await endOffsets(server, stage.topic)], [[3n], [4n]])
})

// X148
test('of many who replay one letter at once, at two desks, one does, and one record is written', async (t) => {
  const stage = await stageDesk(t, server)
  await stage.bury(['a'])
  const desks = [await stage.openDesk(), await stage.openDesk()]
  const all = await Promise.allSettled(
    Array.from({ length: 8 }, (_, n) => desks[n % 2]?.replay({ topic: stage.topic, offset: 0 }, ann)),
  )
  const refused = all.filter((one) => one.status === 'rejected').map(({ reason }) => reason)
  assert.equal(refused.length, 7)
  for (const error of refused) assert.ok(coded('ERR_STATE_TRANSITION')(error), String(error))
  assert.deepEqual(await endOffsets(server, stage.topic), [2n])
  assert.equal((await desks[0]?.audit())?.entries.length, 1)
})

// D50 X150
test('replaying all has a dry run, a limit, a rate and progress', async (t) => {
  const stage = await stageDesk(t, server)
  await stage.bury(['a', 'b', 'c', 'd', 'e', 'f'])
  const told: string[] = []
  const desk = await stage.openDesk({ onReplayed: (topic) => told.push(topic) })
  const { topic } = stage
  const dry = await desk.replayAll({ topic, dryRun: true }, ann)
  assert.deepEqual(dry, { seen: 6, replayed: 6, refused: {}, dryRun: true, interrupted: false })
  assert.deepEqual([(await desk.replay({ topic, offset: 0, dryRun: true }, ann)).letter.state, told], ['pending', []])
  assert.deepEqual(await endOffsets(server, topic), [6n])
  assert.equal((await desk.replayAll({ topic, limit: 2 }, ann)).replayed, 2)
  const steps: number[] = []
  const startedMs = Date.now()
  const rest = await desk.replayAll({ topic: stage.dlq, rate: 10 }, ann, {
    onProgress: ({ replayed }) => steps.push(replayed),
  })
  assert.deepEqual([rest.replayed, steps], [4, [1, 2, 3, 4]])
  assert.ok(Date.now() - startedMs >= 300, 'four in less than the time of three')
  assert.deepEqual(await endOffsets(server, topic), [12n])
  assert.deepEqual(told, Array(6).fill(stage.dlq))
  assert.deepEqual(await desk.list({ topic }), { letters: [] })
  await assert.rejects(desk.replayAll({ topic, rate: 0 }, ann), coded('ERR_OPTION_INVALID'))
})

// X147
test('bad input is refused with a code, and changes nothing', async (t) => {
  const stage = await stageDesk(t, server)
  await createTopic(server, stage.dlq, 2)
  // One by one: a plain producer that reaches one new partition and not yet the other writes both again.
  for (const partition of [0, 1]) await produce(server, [{ topic: stage.dlq, partition, value: 'no envelope' }])
  const desk = await stage.openDesk()
  const { topic } = stage
  await assert.rejects(
    desk.list({ topic: 'nowhere' }),
    coded('ERR_JOB_UNKNOWN', /no topic 'nowhere' and no 'nowhere.dlq'/),
  )
  await assert.rejects(desk.replayAll({ topic: 'nowhere' }, ann), coded('ERR_JOB_UNKNOWN'))
  await assert.rejects(desk.replay({ topic: 'nowhere', offset: 0 }, ann), coded('ERR_JOB_UNKNOWN'))
  await assert.rejects(desk.replay({ topic, offset: 7 }, ann), coded('ERR_JOB_UNKNOWN'))
  await assert.rejects(desk.discard({ topic, offset: 0 }, ann), coded('ERR_DESK_REFUSED', /give the partition/))
  await assert.rejects(desk.discard({ topic, offset: 0, partition: 7 }, ann), coded('ERR_JOB_UNKNOWN'))
  await assert.rejects(
    desk.replay({ topic, offset: 0, partition: 1 }, ann),
    coded('ERR_DESK_REFUSED', /where it came from/),
  )
  await assert.rejects(
    desk.discard({ topic, offset: 0, partition: 1 }, { who: 'ann' }),
    coded('ERR_OPTION_INVALID', /'reason' is missing/),
  )
  await assert.rejects(desk.replay({ topic, offset: 0 }, { who: ' ' }), coded('ERR_OPTION_INVALID', /'who' is empty/))
  for (const offset of [-1, 0.5, '1n', ''])
    await assert.rejects(desk.replay({ topic, offset }, ann), coded('ERR_OPTION_INVALID'))
  await assert.rejects(desk.list({ topic, limit: 0 }), coded('ERR_OPTION_INVALID'))
  assert.deepEqual((await desk.audit()).entries, [])
  assert.deepEqual(await desk.pending({ topic }), { pending: 2 })
  await desk.discard({ topic, offset: 0, partition: 1 }, ann)
  assert.deepEqual(await desk.pending({ topic }), { pending: 1 })
})

// X151
test('history goes on through replays, and after three of them the desk refuses, unless forced', async (t) => {
  const stage = await stageDesk(t, server)
  await stage.bury(['a'])
  const desk = await stage.openDesk()
  const [first] = (await desk.list({ topic: stage.topic })).letters
  await stage.work(() => {
    throw new Error('again')
  })
  for (let replays = 1; replays <= 3; replays += 1) {
    await desk.replayAll({ topic: stage.topic }, ann)
    await eventually(async () => (await desk.pending({ topic: stage.topic })).pending === 1, 'its next death', 30_000)
    const [letter] = (await desk.list({ topic: stage.topic })).letters
    assert.deepEqual(
      [letter?.envelope.replay_count, letter?.envelope.first_failure_at, letter?.jobId],
      [replays, first?.envelope.first_failure_at, first?.jobId],
    )
  }
  const address = { topic: stage.topic, offset: 3 }
  await assert.rejects(desk.replay(address, ann), coded('ERR_DESK_REFUSED', /was replayed 3 times/))
  assert.deepEqual((await desk.replayAll({ topic: stage.topic }, ann)).refused, { 'replayed-too-often': 1 })
  assert.equal((await desk.replay({ ...address, force: true }, ann)).letter.state, 'replayed')
})

// D54 D55
test('ordinary letters are archived after 30 days and cut off; financial ones stay until they are resolved', async (t) => {
  const stage = await stageDesk(t, server)
  await stage.bury(['a', 'b'])
  const aheadBy = (days: number) => ({
    clock: {
      ...systemClock,
      nowMs: () => systemClock.nowMs() + days * 86_400_000,
      sleep: systemClock.sleep.bind(systemClock),
      after: systemClock.after.bind(systemClock),
      monotonicMs: systemClock.monotonicMs.bind(systemClock),
    },
  })
  const { topic } = stage
  const soon = await stage.openDesk(aheadBy(29))
  assert.deepEqual(await soon.archive({ topic, isFinancial: false }), { archived: 0 })
  const late = await stage.openDesk(aheadBy(365))
  assert.deepEqual(await late.archive({ topic, isFinancial: true }), { archived: 0 })
  assert.equal((await late.list({ topic })).letters.length, 2)
  assert.deepEqual(await late.archive({ topic, isFinancial: false }), { archived: 2 })
  assert.deepEqual(await late.list({ topic, state: 'every' }), { letters: [] })
  assert.deepEqual(await startOffsets(server, stage.dlq), [2n])
  const archive = `${new URL(stage.url()).searchParams.get('desk')}-archive`
  assert.deepEqual(await endOffsets(server, archive), [2n])
})

test('a topic of states that would forget is refused before anything is done', async (t) => {
  const stage = await stageDesk(t, server)
  await stage.bury(['a'])
  const desk = freshName('desk')
  await createTopic(server, `${desk}-states`, 1, { 'cleanup.policy': 'delete' })
  const wrong = await openTopicDesk(`${server.url}?desk=${desk}`)
  t.after(() => wrong.close())
  await assert.rejects(
    wrong.replay({ topic: stage.topic, offset: 0 }, ann),
    coded('ERR_STORAGE_FAILED', /cleanup\.policy=compact/),
  )
  assert.deepEqual(await endOffsets(server, stage.topic), [1n])
  const right = await stage.openDesk()
  await right.replay({ topic: stage.topic, offset: 0 }, ann)
  const [made] = await withAdmin(server, (admin) =>
    admin.describeConfigs({
      resources: [
        {
          resourceType: 2,
          resourceName: `${new URL(stage.url()).searchParams.get('desk')}-states`,
          configurationKeys: ['cleanup.policy', 'retention.ms'],
        },
      ],
    }),
  )
  assert.deepEqual(made?.configs.map(({ name, value }) => [name, value]).sort(), [
    ['cleanup.policy', 'compact'],
    ['retention.ms', '-1'],
  ])
})
