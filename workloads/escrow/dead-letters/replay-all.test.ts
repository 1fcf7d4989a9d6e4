import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OptionError } from '../../../src/errors.ts'
import { ann, DLQ, pendingIn, refused, stageDesk } from '../../../test/fixtures/topic-desk.ts'

// D50
test('replaying all replays what is pending, each once, and says how far it is', async () => {
  const { desk, log, die } = stageDesk()
  const first = die('a')
  die('b', { partition: 1 })
  die('c', { replays: 3 })
  die('d', { partition: 2 })
  die('e')
  await desk.discard({ topic: DLQ, ...first }, ann)
  const progress: number[] = []
  const outcome = await desk.replayAll({ topic: DLQ }, ann, { onProgress: ({ replayed }) => progress.push(replayed) })
  assert.deepEqual([outcome.seen, outcome.replayed, outcome.refused], [4, 3, { 'replayed-too-often': 1 }])
  assert.deepEqual(progress.at(-1), 3)
  const replayed = log.recordsOf('delivery.commands').filter(({ headers }) => headers.get('x-dlq-target-group'))
  assert.deepEqual(replayed.map(({ key }) => key?.toString()).toSorted(), ['b', 'd', 'e'])
  assert.equal((await desk.replayAll({ topic: DLQ }, ann)).replayed, 0)
})

// X150
test('a dry run changes nothing, and a limit is kept', async () => {
  const { desk, log, die } = stageDesk()
  for (const key of ['a', 'b', 'c']) die(key)
  const dry = await desk.replayAll({ topic: DLQ, dryRun: true }, ann)
  assert.deepEqual(dry, { seen: 3, replayed: 3, refused: {}, dryRun: true, interrupted: false })
  assert.equal(await pendingIn(desk), 3)
  assert.equal((await desk.replayAll({ topic: DLQ, limit: 2 }, ann)).replayed, 2)
  assert.equal(await pendingIn(desk), 1)
  assert.equal((await log.acts()).length, 2)
  await assert.rejects(desk.replayAll({ topic: DLQ, rate: 0 }, ann), OptionError)
  await assert.rejects(desk.replayAll({ topic: DLQ, limit: -1 }, ann), OptionError)
})

test('refused letters do not count towards the limit', async () => {
  const { desk, die } = stageDesk()
  for (const key of ['a', 'b']) die(key, { replays: 3 })
  for (const key of ['c', 'd', 'e']) die(key)
  const { seen, replayed, refused: left } = await desk.replayAll({ topic: DLQ, limit: 2 }, ann)
  assert.deepEqual([seen, replayed, left], [4, 2, { 'replayed-too-often': 2 }])
})

test('a letter of unknown origin is refused and can be discarded', async () => {
  const { desk, log } = stageDesk()
  log.append({ topic: DLQ, partition: 0, key: null, value: Buffer.from('whose?'), headers: new Map() })
  const unknown = refused('ERR_DESK_REFUSED', /does not say where it came from/)
  await assert.rejects(desk.replay({ topic: DLQ, offset: 0, force: true }, ann), unknown)
  assert.deepEqual((await desk.replayAll({ topic: DLQ }, ann)).refused, { unreplayable: 1 })
  assert.equal((await desk.discard({ topic: DLQ, offset: 0 }, ann)).letter.state, 'discarded')
})

test('a limit is kept over several batches', async () => {
  const { desk, clock, die } = stageDesk()
  for (const key of ['a', 'b', 'c', 'd', 'e']) die(key)
  const running = desk.replayAll({ topic: DLQ, rate: 20, limit: 3 }, ann)
  await clock.advance('1s')
  assert.equal((await running).replayed, 3)
  assert.equal(await pendingIn(desk), 2)
})

test('a rate is kept, and an abort is heard', async () => {
  const { desk, log, clock, die } = stageDesk()
  for (let index = 0; index < 20; index += 1) die(`k${index}`)
  const abort = new AbortController()
  const running = desk.replayAll({ topic: DLQ, rate: 2 }, ann, { signal: abort.signal })
  await clock.advance('4900ms')
  const replayed = log.recordsOf('delivery.commands').length - 20
  assert.equal(replayed, 10)
  abort.abort()
  const outcome = await running
  assert.equal(outcome.replayed, 10)
  assert.equal(await pendingIn(desk), 10)
})

test('what dies while all is replayed is not replayed by the same call', async () => {
  const { desk, die } = stageDesk()
  for (let index = 0; index < 150; index += 1) die(`k${index}`)
  let [batches, outcome] = [0, 0]
  const onProgress = (): void => {
    die(`again${batches}`, { replays: 1 })
    batches += 1
  }
  outcome = (await desk.replayAll({ topic: DLQ }, ann, { onProgress })).replayed
  assert.deepEqual([batches, outcome], [2, 150])
  assert.equal(await pendingIn(desk), 2)
})
