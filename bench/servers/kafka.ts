/** Topics and groups on the Kafka of a run: each measurement has a group and a prefix of topics of its own. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTopic, endOffsets, groupOffsets, withAdmin } from '../../test/servers/kafka.ts'

export const PARTITIONS = 6

/** A URL with a group and a prefix that nobody uses, and the empty topic; the names begin with `name`. */
export async function createTopicAndGroup(url: string, name: string): Promise<string> {
  const group = `${name}-${randomBytes(4).toString('hex')}`
  const created = new URL(url)
  created.searchParams.set('group', group)
  created.searchParams.set('prefix', `${group}.`)
  await createTopic({ address: addressOf(url) }, topicOf(created.href), PARTITIONS)
  return created.href
}

/** Deletes all topics whose names begin with that of the URL's group. */
export function removeTopics(url: string): Promise<void> {
  return withAdmin({ address: addressOf(url) }, async (admin) => {
    const listed = async (): Promise<string[]> =>
      (await admin.listTopics()).filter((topic) => topic.startsWith(groupOf(url)))
    const topics = await listed()
    if (topics.length === 0) return
    await admin.deleteTopics({ topics })
    // Their files are not for the next measurement to wait for.
    while ((await listed()).length > 0) await sleep(10)
  })
}

export function groupOf(url: string): string {
  return new URL(url).searchParams.get('group') ?? 'bench'
}

/** Where jobs of the type `bench` are. */
export function topicOf(url: string): string {
  return `${groupOf(url)}.bench`
}

/** `host:port`. */
export function addressOf(url: string): string {
  return new URL(url).host
}

/** Records that the group has not committed. */
export async function lagOf(url: string): Promise<number> {
  const server = { address: addressOf(url) }
  const [ends, committed] = await Promise.all([endOffsets(server, topicOf(url)), groupOffsets(server, groupOf(url))])
  const done = new Map(committed.map(({ partition, offset }) => [partition, offset]))
  return ends.reduce((sum, end, partition) => sum + Number(end - (done.get(partition) ?? 0n)), 0)
}
