/** Topics that are deleted, made again, enlarged, compacted or emptied, and settings that refuse what they must take. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Allowance } from '../../../proof/history/entry.ts'
import { DLQ_SUFFIX } from '../../../src/engines/kafka/record.ts'
import { endOffsets, startOffsets } from '../../servers/kafka-topics.ts'
import type { Nemesis, Scene } from '../scene.ts'
import type { StruckKafka } from './kafka.ts'
import { pick } from './random.ts'

/** Kafka rolls a segment when the next record comes, and compacts what was rolled. */
const COMPACTED = Object.freeze({ 'cleanup.policy': 'compact', 'segment.ms': '1', 'min.cleanable.dirty.ratio': '0.0' })
const UNCOMPACTED = Object.freeze({ 'cleanup.policy': 'delete', 'segment.ms': null, 'min.cleanable.dirty.ratio': null })

type Settings = Readonly<Record<string, string | null>>

export function topicNemeses({ servers, prefix, desk }: StruckKafka): readonly Nemesis[] {
  const letterTopics = (): Promise<readonly string[]> => servers.letterTopics(prefix)

  /** Strikes one of the topics; a round that has none yet is spared. */
  const ofTopic = (
    name: string,
    does: string,
    allows: readonly Allowance[],
    act: (topic: string, random: () => number, scene: Scene) => Promise<void>,
    choose: () => Promise<readonly string[]> = () => servers.jobTopics(prefix),
  ): Nemesis => ({
    name,
    does,
    async strike(scene, random) {
      const topics = await choose()
      if (topics.length === 0) return
      const topic = pick(random, topics)
      const type = topic.slice(prefix.length, topic.endsWith(DLQ_SUFFIX) ? -DLQ_SUFFIX.length : undefined)
      await scene.during({ nemesis: name, target: null, detail: type, types: [type], allows }, () =>
        act(topic, random, scene),
      )
    },
  })

  const configured =
    (during: Settings, after: Settings) =>
    async (topic: string, random: () => number): Promise<void> => {
      await servers.configure(topic, during)
      await sleep(500 + random() * 2_500)
      await servers.configure(topic, after)
    }

  return [
    ofTopic(
      'topic-recreated',
      'deletes a topic of jobs and makes it again, at once or later, or leaves that to the processes',
      ['lose-all'],
      async (topic, random) => {
        await servers.administer((admin) => admin.deleteTopics({ topics: [topic] }))
        if (random() < 0.4) await sleep(random() * 2_000)
        const partitions = 1 + Math.floor(random() * 4)
        if (random() < 0.7) await create(topic, partitions)
        // Its readers make it again after five seconds.
        while ((await servers.partitionsOf(topic)) === 0) await sleep(200)
      },
    ),
    ofTopic('topic-enlarged', 'adds partitions to a topic of jobs', [], async (topic, random) => {
      const count = (await servers.partitionsOf(topic)) + 1 + Math.floor(random() * 2)
      await servers.administer(async (admin) => {
        await admin.createPartitions({ topics: [{ name: topic, count }] })
      })
    }),
    ofTopic(
      'topic-compacted',
      'compacts a topic of jobs for some seconds, against what the documentation says',
      ['lose-all'],
      configured(COMPACTED, UNCOMPACTED),
    ),
    ofTopic(
      'retention',
      'deletes the older half of the records of a topic of jobs, settled or not',
      ['lose-all'],
      async (topic, random) => {
        const [starts, ends] = [await startOffsets(servers, topic), await endOffsets(servers, topic)]
        const partitions = ends.flatMap((end, partition) => {
          const start = starts[partition] ?? 0n
          const offset = start + BigInt(Math.ceil(Number(end - start) * (0.5 + random() / 2)))
          return end > start && start >= 0n ? [{ partition, offset }] : []
        })
        if (partitions.length === 0) return
        await servers.administer((admin) => admin.deleteRecords({ topics: [{ name: topic, partitions }] }))
      },
    ),
    ofTopic(
      'topic-refuses',
      'lets a topic of jobs take no record for some seconds: too few copies in sync, or records too large',
      [],
      async (topic, random) => {
        const setting = pick(random, ['min.insync.replicas', 'max.message.bytes'] as const)
        await configured({ [setting]: setting === 'min.insync.replicas' ? '9' : '80' }, { [setting]: null })(
          topic,
          random,
        )
      },
    ),
    ofTopic(
      'letters-refused',
      'lets a topic of dead letters take no record for some seconds',
      [],
      configured({ 'max.message.bytes': '80' }, { 'max.message.bytes': null }),
      letterTopics,
    ),
    ofTopic(
      'letters-deleted',
      'deletes a topic of dead letters',
      ['lose-all'],
      (topic) => servers.administer((admin) => admin.deleteTopics({ topics: [topic] })),
      letterTopics,
    ),
    ofTopic(
      'desk-policy',
      'gives the topic of the desk a cleanup policy by which states would get lost, for some seconds',
      [],
      configured({ 'cleanup.policy': 'delete' }, { 'cleanup.policy': 'compact' }),
      () => servers.topics(desk),
    ),
  ]

  /** A reader that found it missing may have been quicker. */
  async function create(topic: string, partitions: number): Promise<void> {
    await servers.administer(async (admin) => {
      if ((await admin.listTopics()).includes(topic)) return
      await admin.createTopics({ topics: [topic], partitions, replicas: servers.brokers.length })
    })
  }
}
