/** What the engine relies on when it asks about topics, groups and lag. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createTopic,
  endOffsets,
  freshName,
  freshTopic,
  groupOffsets,
  kafkaServer,
  withAdmin,
} from '../servers/kafka.ts'
import { closeAll, commitPinned, join, openMember, outcomeOf, pin, produce } from './client.ts'

const server = await kafkaServer()

// D20
test('lag is the end less what the group has committed: 7 produced, 2 committed, 5 behind', async (t) => {
  t.after(closeAll)
  const topic = await freshTopic(server, 'lag')
  const group = freshName('group')
  await produce(server, topic, 0, 7)
  const member = openMember(server, group)
  await join(member, topic)
  await commitPinned(member, pin(member), topic, [{ partition: 0, offset: 2n }])
  const [end = 0n] = await endOffsets(server, topic)
  const [committed] = await groupOffsets(server, group)
  assert.equal(end - (committed?.offset ?? 0n), 5n)
})

test('a group that does not exist has committed nothing, and asking does not make it', async () => {
  const group = freshName('nobody')
  assert.deepEqual(await groupOffsets(server, group), [])
  const groups = await withAdmin(server, (admin) => admin.listGroups())
  assert.equal(groups.has(group), false)
})

test('a topic that exists is not made again, and its settings are read back', async () => {
  const topic = freshName('made')
  await createTopic(server, topic, 2, { 'cleanup.policy': 'compact', 'retention.ms': '-1' })
  assert.equal(await outcomeOf(createTopic(server, topic, 2)), 'TOPIC_ALREADY_EXISTS')
  const [described] = await withAdmin(server, (admin) =>
    admin.describeConfigs({
      resources: [{ resourceType: 2, resourceName: topic, configurationKeys: ['cleanup.policy', 'retention.ms'] }],
    }),
  )
  assert.deepEqual(described?.configs.map(({ name, value }) => [name, value]).sort(), [
    ['cleanup.policy', 'compact'],
    ['retention.ms', '-1'],
  ])
})

test('records of a compacted topic cannot be deleted by offset', async (t) => {
  t.after(closeAll)
  const topic = freshName('compact')
  await createTopic(server, topic, 1, { 'cleanup.policy': 'compact' })
  const remove = withAdmin(server, (admin) =>
    admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: 0n }] }] }),
  )
  assert.equal(await outcomeOf(remove), 'POLICY_VIOLATION')
})

test('a topic that is missing is not made by asking or writing', async (t) => {
  t.after(closeAll)
  const topic = freshName('missing')
  await assert.rejects(produce(server, topic, 0, 1))
  const topics = await withAdmin(server, (admin) => admin.listTopics())
  assert.equal(topics.includes(topic), false)
})
