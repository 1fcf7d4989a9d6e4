/** Members that come and go, and what an administrator does to their group. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CrewProcess, Nemesis, Scene } from '../scene.ts'
import type { StruckKafka } from './kafka.ts'
import { pick } from './processes.ts'

const ENDS = ['SIGTERM', 'SIGKILL', 'SIGSTOP'] as const

/** Longer than a session, so that the group goes on without the member. */
const STOPPED_MS = 4_000

/** A worker that joins, and leaves, dies or hangs soon after. */
async function guest(scene: Scene, random: () => number): Promise<void> {
  const process: CrewProcess = scene.crew.launch('worker')
  await Promise.race([sleep(200 + random() * 2_000), process.exited])
  const end = pick(ENDS, random)
  process.signal(end)
  if (end === 'SIGSTOP') {
    await sleep(STOPPED_MS * random())
    process.signal('SIGCONT')
    process.signal('SIGTERM')
  }
  await process.exited
}

export function groupNemeses({ servers, group, prefix }: StruckKafka): readonly Nemesis[] {
  return [
    {
      name: 'rebalances',
      does: 'lets one to three workers join the group one after the other, and leave it, die or hang',
      strike: (scene, random) =>
        scene.during({ nemesis: 'rebalances', target: null }, async () => {
          const guests = Array.from({ length: 1 + Math.floor(random() * 3) }, async (_, index) => {
            await sleep(index * 300)
            await guest(scene, random)
          })
          await Promise.all(guests)
        }),
    },
    {
      name: 'members-removed',
      does: 'lets an administrator remove all members from the group',
      strike: (scene) => scene.during({ nemesis: 'members-removed', target: null }, () => removeMembers()),
    },
    {
      name: 'offsets-reset',
      does: 'stops all processes, puts the group back to the beginning of a topic, and starts them again',
      async strike(scene, random) {
        const topic = pick(await servers.jobTopics(prefix), random)
        const type = topic.slice(prefix.length)
        const signal = pick(['SIGTERM', 'SIGKILL'] as const, random)
        const fault = {
          nemesis: 'offsets-reset',
          target: null,
          detail: type,
          types: [type],
        } as const
        await scene.during(fault, () => scene.crew.whileStopped(signal, { act: () => reset(topic) }))
      },
    },
  ]

  async function removeMembers(): Promise<void> {
    await servers.administer((admin) => admin.removeMembersFromConsumerGroup({ groupId: group, members: null }))
  }

  /** The broker lets nobody do that to a group with members; one that was killed is missed after its session. */
  async function reset(topic: string): Promise<void> {
    const count = await servers.partitionsOf(topic)
    const partitionOffsets = Array.from({ length: count }, (_, partition) => ({ partition, offset: 0n }))
    await servers.administer((admin) =>
      admin.alterConsumerGroupOffsets({ groupId: group, topics: [{ name: topic, partitionOffsets }] }),
    )
  }
}
