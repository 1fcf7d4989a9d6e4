/** Members that come and go, and what an administrator does to their group. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CrewProcess, Nemesis, Scene } from '../scene.ts'
import type { StruckKafka } from './kafka.ts'
import { between, pick } from './random.ts'

const ENDS = ['SIGTERM', 'SIGKILL', 'SIGSTOP'] as const

/** Longer than a session, so that the group goes on without the member. */
const STOPPED_MS = 4_000

interface Guest {
  readonly forMs: number
  readonly end: (typeof ENDS)[number]
  readonly stoppedMs: number
}

/** A worker that joins, and leaves, dies or hangs soon after. */
async function visit({ crew }: Scene, { forMs, end, stoppedMs }: Guest): Promise<void> {
  const process: CrewProcess = crew.launch('worker')
  await Promise.race([sleep(forMs), process.exited])
  process.signal(end)
  if (end === 'SIGSTOP') {
    await sleep(stoppedMs)
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
          // Drawn before they come, because then their order is not left to chance.
          const guests = Array.from(
            { length: between(random, 1, 3) },
            (): Guest => ({
              forMs: between(random, 200, 2_200),
              end: pick(random, ENDS),
              stoppedMs: between(random, 0, STOPPED_MS),
            }),
          )
          await Promise.all(
            guests.map(async (guest, index) => {
              await sleep(index * 300)
              await visit(scene, guest)
            }),
          )
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
        const topic = pick(random, await servers.jobTopics(prefix))
        const type = topic.slice(prefix.length)
        const signal = pick(random, ['SIGTERM', 'SIGKILL'] as const)
        const allows = { allows: ['read-again'], types: [type] } as const
        const fault = { nemesis: 'offsets-reset', target: null, detail: type, ...allows }
        await scene.during(fault, () => scene.crew.whileStopped(signal, { act: () => reset(topic) }))
      },
    },
  ]

  async function removeMembers(): Promise<void> {
    await servers.administer((admin) => admin.removeMembersFromConsumerGroup({ groupId: group, members: null }))
  }

  /** The broker refuses that for a group with members; a killed one leaves the group after its session. */
  async function reset(topic: string): Promise<void> {
    const count = await servers.partitionsOf(topic)
    const partitionOffsets = Array.from({ length: count }, (_, partition) => ({ partition, offset: 0n }))
    await servers.administer((admin) =>
      admin.alterConsumerGroupOffsets({ groupId: group, topics: [{ name: topic, partitionOffsets }] }),
    )
  }
}
