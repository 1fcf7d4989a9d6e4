/** What the engine relies on when it commits: the metadata that carries attempts and finished offsets. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as kafka from '@platformatic/kafka'
import { freshName, freshTopic, groupOffsets, kafkaServer, withAdmin } from '../servers/kafka.ts'
import { closeAll, commitPinned, join, openMember, outcomeOf, partitionsOf, pin, until } from './client.ts'

const server = await kafkaServer()
after(closeAll)

test('the door to the low-level calls is exported', () => {
  assert.equal(typeof kafka.kGetApi, 'symbol')
  assert.equal(typeof kafka.Consumer.prototype[kafka.kGetApi], 'function')
})

test('metadata of a commit survives the member and is read back', async () => {
  const topic = await freshTopic(server, 'metadata', 2)
  const group = freshName('group')
  const member = openMember(server, group)
  await join(member, topic)
  const metadata = JSON.stringify({ d: Buffer.from([1, 2, 3]).toString('base64'), a: { 7: 3 } })
  await commitPinned(member, pin(member), topic, [{ partition: 1, offset: 7n, metadata }])
  await member.close(true)
  assert.deepEqual(await groupOffsets(server, group), [{ topic, partition: 1, offset: 7n, metadata }])
})

test('metadata may have 4096 bytes and no more; one that is refused leaves the last one as it was', async () => {
  const topic = await freshTopic(server, 'size')
  const group = freshName('group')
  const member = openMember(server, group)
  await join(member, topic)
  const commit = (offset: bigint, bytes: number): Promise<string> =>
    outcomeOf(commitPinned(member, pin(member), topic, [{ partition: 0, offset, metadata: 'x'.repeat(bytes) }]))
  assert.equal(await commit(1n, 4_096), 'ok')
  assert.equal(await commit(2n, 4_097), 'OFFSET_METADATA_TOO_LARGE')
  const [kept] = await groupOffsets(server, group)
  assert.deepEqual([kept?.offset, kept?.metadata.length], [1n, 4_096])
})

test("the consumer's own commit wipes the metadata, which is why the engine does not use it", async () => {
  const topic = await freshTopic(server, 'wiped')
  const group = freshName('group')
  const member = openMember(server, group)
  await join(member, topic)
  await commitPinned(member, pin(member), topic, [{ partition: 0, offset: 1n, metadata: 'attempts' }])
  await member.commit({ offsets: [{ topic, partition: 0, offset: 1n, leaderEpoch: -1 }] })
  assert.deepEqual(await groupOffsets(server, group), [{ topic, partition: 0, offset: 1n, metadata: '' }])
})

test('the broker checks member and generation but not who owns the partition, so the engine has to', async () => {
  const topic = await freshTopic(server, 'owner', 2)
  const group = freshName('group')
  const first = openMember(server, group)
  const second = openMember(server, group)
  await join(first, topic)
  await join(second, topic)
  await until('each has one', () => partitionsOf(first).length === 1 && partitionsOf(second).length === 1)
  // While the group settles it says so; then it goes through for the partition of the other too.
  await until('the commit goes through', async () => {
    const offsets = [0, 1].map((partition) => ({ partition, offset: 9n }))
    const said = await outcomeOf(commitPinned(first, pin(first), topic, offsets))
    assert.ok(['ok', 'REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION'].includes(said), said)
    return said === 'ok'
  })
  assert.deepEqual(
    (await groupOffsets(server, group)).map(({ offset }) => offset),
    [9n, 9n],
  )
})

test('offsets of a group are altered only while it has no member', async () => {
  const topic = await freshTopic(server, 'altered')
  const group = freshName('group')
  const member = openMember(server, group)
  await join(member, topic)
  const alter = (): Promise<string> =>
    withAdmin(server, (admin) =>
      outcomeOf(
        admin.alterConsumerGroupOffsets({
          groupId: group,
          topics: [{ name: topic, partitionOffsets: [{ partition: 0, offset: 3n }] }],
        }),
      ),
    )
  assert.equal(await alter(), 'UNKNOWN_MEMBER_ID')
  await member.close(true)
  assert.equal(await alter(), 'ok')
  assert.deepEqual(
    (await groupOffsets(server, group)).map(({ offset }) => offset),
    [3n],
  )
})
