/** What the engine does while the group is being shared out anew, on a real broker. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import type { NotApplied } from '../../src/engine/outcome.ts'
import { decodeProgress } from '../../src/engines/kafka/commit-metadata.ts'
import { Commits } from '../../src/engines/kafka/commits.ts'
import type { OwnedPartition } from '../../src/engines/kafka/owned-partition.ts'
import { freshName, freshTopic, groupOffsets, type KafkaServer, kafkaServer, withParameters } from '../servers/kafka.ts'
import {
  briefUrlOf,
  claimed,
  complete,
  consume,
  eventually,
  never,
  openEngine,
  produce,
  SESSION_MS,
  startHolder,
  urlOf,
} from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

test('while the group waits for a silent member, the others claim, settle and commit, and repeat nothing', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'waiting', 4)
  const engine = await openEngine(briefUrlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  // It is missed only after its own session, much later than ours would be over, and it is woken before.
  const silent = startHolder(urlOf(server, group), topic)
  t.after(() => silent.end())
  await silent.heard('ready')
  silent.process.kill('SIGSTOP')
  const other = await openEngine(urlOf(server, group))
  t.after(() => other.close())
  let isShared = false
  const joining = consume(other, topic).finally(() => {
    isShared = true
  })
  // The time itself is what is tried: nobody may take us for lost because the group waits for somebody else.
  await pass(SESSION_MS * 1.5)
  await produce(
    server,
    [0, 1, 2, 3].map((partition) => ({ topic, partition, value: '1' })),
  )
  const held = await consumer.claim({ max: 2, waitMs: 20_000, signal: never })
  assert.ok(held.length > 0, 'nothing could be claimed while the group waited')
  assert.deepEqual(await consumer.settle(held.map((lease) => ({ lease, outcome: complete }))), [])
  const sum = async (): Promise<bigint> =>
    (await groupOffsets(server, group)).reduce((total, { offset }) => total + offset, 0n)
  await eventually(async () => (await sum()) === BigInt(held.length), 'the commit', 20_000)
  assert.equal(isShared, false, 'the group did not wait, so nothing was shown')
  silent.tell('leave')
  silent.process.kill('SIGCONT')
  await silent.heard('left')
  const second = await joining
  const ids = held.map(({ job }) => job.id)
  const claimMore = async (): Promise<void> => {
    const claims = await Promise.all([consumer, second].map((one) => claimed(one, 4, 500)))
    ids.push(...claims.flat().map(({ job }) => job.id))
  }
  await eventually(async () => {
    await claimMore()
    return ids.length >= 4
  }, 'the records of all partitions')
  // Whatever comes twice has time to show itself.
  await claimMore()
  assert.deepEqual(
    ids.sort(),
    [0, 1, 2, 3].map((partition) => `${topic}:${partition}:0`),
  )
})

test('what is accepted while the last commit of a partition that moves is on its way does not run again', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'late', 2)]
  await produce(
    server,
    [0, 1].map((partition) => ({ topic, partition, value: '1' })),
  )
  // Jobs that run get no time at all before their partition moves.
  const url = withParameters(server, `group=${group}&session=60000&heartbeat=100&drain=0`)
  const engines = [await openEngine(url), await openEngine(url)] as const
  t.after(() => Promise.all(engines.map((engine) => engine.close())))
  const stays = await consume(engines[0], topic)
  const leases = await claimed(stays, 2)
  // No commit of their starts is on its way any more, which would say by chance what else was done.
  const isTold = ({ metadata }: { readonly metadata: string }): boolean =>
    [...decodeProgress(0, metadata).retryStates].length === 1
  await eventually(async () => (await groupOffsets(server, group)).every(isTold), 'the commit of both starts')
  const { commit } = Commits.prototype
  let lost: readonly NotApplied[] | null = null
  t.mock.method(Commits.prototype, 'commit', async function (this: Commits, moving: readonly OwnedPartition[]) {
    await commit.call(this, moving)
    // The broker has taken it, and its answer is not heard yet.
    if (lost !== null || !moving.some(({ isDraining }) => isDraining)) return
    lost = []
    lost = await stays.settle(leases.map((lease) => ({ lease, outcome: complete })))
  })
  const joins = await consume(engines[1], topic)
  await eventually(() => lost !== null, 'the partition that moves')
  assert.deepEqual(lost, [])
  await produce(
    server,
    [0, 1].map((partition) => ({ topic, partition, value: '2' })),
  )
  // Each member finds what came later, and nothing before it.
  const later = (await Promise.all([stays, joins].map((one) => claimed(one, 1)))).flat()
  assert.deepEqual(
    later.map(({ job }) => job.id).sort(),
    [0, 1].map((partition) => `${topic}:${partition}:1`),
  )
})
