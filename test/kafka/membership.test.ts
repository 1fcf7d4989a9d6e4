/** What the engine relies on when members come, go, drain and stall. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import type { GroupProtocolsMetadataCallback } from '@platformatic/kafka'
import { loadClient } from '../../src/engines/kafka/driver.ts'
import { GroupMember } from '../../src/engines/kafka/member.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import { systemClock } from '../../src/time/clock.ts'
import { freshName, freshTopic, groupOffsets, kafkaServer, withAdmin } from '../servers/kafka.ts'
import {
  beat,
  closeAll,
  commitPinned,
  join,
  LASTING_MS,
  openMember,
  outcomeOf,
  partitionsOf,
  pin,
  type Raw,
  SESSION_MS,
  until,
} from './client.ts'

const server = await kafkaServer()
after(closeAll)

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** A member that calls `drain` when it is asked to give partitions up, before it joins again. */
function draining(group: string, drain: (member: Raw, lost: readonly number[]) => Promise<void>): Raw {
  let owned: readonly number[] = []
  const protocolsMetadata: GroupProtocolsMetadataCallback = async () => {
    const kept = partitionsOf(member)
    const lost = owned.filter((partition) => !kept.includes(partition))
    if (lost.length > 0) await drain(member, lost)
    return Buffer.alloc(0)
  }
  const member = openMember(server, group, { protocolsMetadata, sessionTimeout: SESSION_MS })
  member.on('consumer:group:join', () => {
    owned = partitionsOf(member)
  })
  return member
}

test('a drain longer than the session, with heartbeats of its own, may still commit; the next owner waits for it', async () => {
  const topic = await freshTopic(server, 'drain', 4)
  const group = freshName('group')
  const seen: string[] = []
  const beats = new Set<string>()
  let other: Raw | null = null
  let heldByOther: readonly number[] = []
  const first = draining(group, async (member, lost) => {
    const pinned = pin(member)
    const end = performance.now() + SESSION_MS * 1.5
    while (performance.now() < end) {
      beats.add(await beat(member, pinned))
      await pause(200)
    }
    heldByOther = other === null ? [] : partitionsOf(other)
    const offsets = lost.map((partition) => ({ partition, offset: 5n, metadata: 'drained' }))
    seen.push(await outcomeOf(commitPinned(member, pinned, topic, offsets)))
  })
  await join(first, topic)
  assert.deepEqual(partitionsOf(first), [0, 1, 2, 3])
  const { member: before } = pin(first)
  other = openMember(server, group)
  await join(other, topic)
  const second = other
  await until('the other has its half', () => partitionsOf(second).length === 2)
  assert.deepEqual(seen, ['ok'])
  assert.deepEqual(
    [...beats].filter((said) => said !== 'ok' && said !== 'REBALANCE_IN_PROGRESS'),
    [],
  )
  assert.deepEqual(heldByOther, [])
  assert.equal(first.memberId, before)
  // Cooperative: what is not given up stays where it is, and is in the commit of nobody.
  assert.equal(partitionsOf(first).length, 2)
  assert.deepEqual(
    (await groupOffsets(server, group)).map(({ partition, offset, metadata }) => ({ partition, offset, metadata })),
    partitionsOf(second).map((partition) => ({ partition, offset: 5n, metadata: 'drained' })),
  )
})

test('a drain longer than the session without heartbeats of its own loses the membership, and its commit is refused', async () => {
  const topic = await freshTopic(server, 'silent', 2)
  const group = freshName('group')
  const seen: string[] = []
  const first = draining(group, async (member, lost) => {
    const pinned = pin(member)
    await until('the member is evicted', async () => !(await membersOf(group)).includes(pinned.member))
    const offsets = lost.map((partition) => ({ partition, offset: 5n }))
    seen.push(await outcomeOf(commitPinned(member, pinned, topic, offsets)))
  })
  await join(first, topic)
  const second = openMember(server, group)
  await join(second, topic)
  await until('the drain has ended', () => seen.length > 0)
  assert.deepEqual(seen, ['UNKNOWN_MEMBER_ID'])
  assert.deepEqual(await groupOffsets(server, group), [])
})

async function membersOf(group: string): Promise<readonly string[]> {
  const groups = await withAdmin(server, (admin) => admin.describeGroups({ groups: [group] }))
  return [...(groups.get(group)?.members.keys() ?? [])]
}

test('a member whose event loop was blocked commits with what it had pinned, and is refused', async () => {
  const topic = await freshTopic(server, 'zombie', 2)
  const group = freshName('group')
  const flag = new SharedArrayBuffer(4)
  const worker = new Worker(new URL('./blocked-member.ts', import.meta.url), {
    workerData: { address: server.address, group, topic, flag },
  })
  const said: { memberId: string; commit: string }[] = []
  let joined = ''
  worker.on('message', (message: { joined: string } | { memberId: string; commit: string }) => {
    if ('joined' in message) joined = message.joined
    else said.push(message)
  })
  try {
    await until('the first has joined', () => joined !== '')
    const second = openMember(server, group)
    await join(second, topic)
    await until('the second has all', () => partitionsOf(second).length === 2)
    await commitPinned(second, pin(second), topic, [
      { partition: 0, offset: 50n },
      { partition: 1, offset: 50n },
    ])
    Atomics.store(new Int32Array(flag), 0, 1)
    Atomics.notify(new Int32Array(flag), 0)
    await until('the first has tried', () => said.length === 1)
    assert.equal(said[0]?.commit, 'UNKNOWN_MEMBER_ID')
    assert.deepEqual(
      (await groupOffsets(server, group)).map(({ offset }) => offset),
      [50n, 50n],
    )
    // It comes back by itself, as somebody else: that is how the engine learns that it had lost everything.
    await until('the first is back', () => said.length === 2)
    assert.notEqual(said[1]?.memberId, joined)
  } finally {
    await worker.terminate()
  }
})

test('a commit pinned to an earlier generation of the same member is refused', async () => {
  const topic = await freshTopic(server, 'generation')
  const member = openMember(server, freshName('group'))
  await join(member, topic)
  const pinned = pin(member)
  await member.joinGroup({})
  assert.ok(member.generationId > pinned.generation)
  assert.equal(member.memberId, pinned.member)
  const commit = commitPinned(member, pinned, topic, [{ partition: 0, offset: 1n }])
  assert.equal(await outcomeOf(commit), 'ILLEGAL_GENERATION')
})

test('new partitions are not noticed until the member joins again', async () => {
  const topic = await freshTopic(server, 'grown', 2)
  const member = openMember(server, freshName('group'))
  await join(member, topic)
  await withAdmin(server, (admin) => admin.createPartitions({ topics: [{ name: topic, count: 4 }] }))
  const fresh = async (): Promise<number | undefined> =>
    (await member.metadata({ topics: [topic], forceUpdate: true })).topics.get(topic)?.partitionsCount
  await until('the metadata tells it', async () => (await fresh()) === 4)
  let beats = 0
  member.on('consumer:heartbeat:end', () => {
    beats += 1
  })
  await until('the group goes on', () => beats >= 3)
  assert.deepEqual(partitionsOf(member), [0, 1])
  await member.joinGroup({})
  assert.deepEqual(partitionsOf(member), [0, 1, 2, 3])
})

test('a forced close leaves the group at once, so that the other does not wait for the session', async () => {
  const topic = await freshTopic(server, 'leaves', 2)
  const group = freshName('group')
  const first = openMember(server, group)
  const second = openMember(server, group)
  await join(first, topic)
  await join(second, topic)
  await until('each has one', () => partitionsOf(first).length === 1 && partitionsOf(second).length === 1)
  const start = performance.now()
  await first.close(true)
  await until('the second has both', () => partitionsOf(second).length === 2, LASTING_MS * 2)
  assert.ok(performance.now() - start < LASTING_MS / 2, `${performance.now() - start} ms`)
})

test('a topic that the broker does not list yet is looked for again soon, not only at the next ordinary look', async (t) => {
  const topic = await freshTopic(server, 'unlisted')
  const assigned: string[] = []
  let looks = 0
  const member = new GroupMember({
    client: await loadClient(),
    options: parseUrl(`${server.url}?group=${freshName('group')}&session=60000&heartbeat=200`),
    clock: systemClock,
    worker: 'w',
    topics: [topic],
    existing: async () => {
      looks += 1
      return looks === 1 ? [] : [topic]
    },
    onAssigned: (partitions) => void assigned.push(...partitions.map((place) => place.topic)),
    onRevoking: async () => {},
    onLost: () => {},
    commit: async () => {},
    onSure: () => {},
    onTopics: () => {},
    onError: () => {},
  })
  t.after(() => member.close())
  await member.join()
  // An ordinary look comes after 30 s.
  await until('its partition', () => assigned.includes(topic), 20_000)
})

test('a topic that appears while the group waits for a member that never answers ends no process, and is assigned', async (t) => {
  const [old, added] = [await freshTopic(server, 'old'), await freshTopic(server, 'added')]
  const group = freshName('group')
  const assigned: string[] = []
  let existing: readonly string[] = [old]
  const seen = new Set<string>()
  const member = new GroupMember({
    client: await loadClient(),
    options: parseUrl(`${server.url}?group=${group}&session=60000&heartbeat=200`),
    clock: systemClock,
    worker: 'w',
    topics: [old, added],
    existing: async () => existing,
    onAssigned: (partitions) => void assigned.push(...partitions.map((place) => place.topic)),
    onRevoking: async () => {},
    onLost: () => {},
    commit: async () => {},
    onSure: () => {},
    onTopics: (ids) => {
      for (const topic of ids.keys()) seen.add(topic)
    },
    onError: () => {},
  })
  t.after(() => member.close())
  await member.join()
  let [hasJoined, isAsked] = [false, false]
  const other = openMember(server, group, {
    sessionTimeout: SESSION_MS,
    protocolsMetadata: async () => {
      isAsked = hasJoined
      if (isAsked) await new Promise(() => {})
      return Buffer.alloc(0)
    },
  })
  other.on('consumer:group:join', () => {
    hasJoined = true
  })
  await join(other, old)
  void member.raw.joinGroup({}).catch(() => {})
  await until('the other keeps the group waiting', () => isAsked)
  existing = [old, added]
  await until('the new topic is seen', () => seen.has(added))
  // The other does not answer, and after its session the group is ours alone.
  await until('the new topic is assigned', () => assigned.includes(added))
})
