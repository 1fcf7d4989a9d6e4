/** Brokers that end, come back or hang. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { OwnKafka } from '../../servers/kafka.ts'
import type { Nemesis, Store } from '../scene.ts'
import type { StruckKafka } from './kafka.ts'
import { pick } from './random.ts'

/** Shorter and longer than the session of a member, and than that of a broker. */
const AWAY_MS = [0, 1_000, 5_000]
const FROZEN_MS = [300, 1_500, 3_500, 7_000]

type Blow = (broker: OwnKafka, random: () => number) => Promise<void>

const killed: Blow = async (broker, random) => {
  await broker.kill()
  await sleep(pick(random, AWAY_MS))
  await broker.start()
}

const stopped: Blow = async (broker, random) => {
  await broker.stop()
  await sleep(pick(random, AWAY_MS))
  await broker.start()
}

const frozen: Blow = async (broker, random) => {
  await broker.freeze()
  await sleep(pick(random, FROZEN_MS))
  await broker.thaw()
}

export function brokerNemeses({ servers, group, prefix }: StruckKafka): readonly Nemesis[] {
  const anyBroker = async (random: () => number): Promise<OwnKafka> => pick(random, servers.brokers)
  const leader = async (random: () => number): Promise<OwnKafka> => {
    const topics = await servers.topics(prefix)
    if (topics.length === 0) return anyBroker(random)
    return servers.leaderOf(pick(random, topics), 0)
  }
  const coordinator = (): Promise<OwnKafka> => servers.coordinatorOf(group)
  const nemesis = (
    name: string,
    does: string,
    choose: (random: () => number) => Promise<OwnKafka>,
    blow: Blow,
    needsThree = true,
  ): Nemesis => ({
    name,
    does,
    excuse: (_store: Store) =>
      needsThree && servers.brokers.length === 1 ? 'one broker alone leads and coordinates everything' : null,
    async strike(scene, random) {
      const broker = await choose(random)
      const detail = `broker ${servers.brokers.indexOf(broker) + 1}`
      // What was settled and not committed runs again once the group is formed anew.
      await scene.during({ nemesis: name, target: null, detail }, async () => {
        await blow(broker, random)
        await servers.whole(prefix)
      })
    },
  })
  return [
    nemesis('broker-kill', 'ends a broker with SIGKILL and starts it again', anyBroker, killed, false),
    nemesis('broker-restart', 'stops a broker in an orderly way and starts it again', anyBroker, stopped, false),
    nemesis('broker-freeze', 'lets a broker hang for less or for more than a session', anyBroker, frozen, false),
    nemesis('leader-kill', 'ends the broker that leads a partition, and starts it again', leader, killed),
    nemesis('leader-freeze', 'lets the broker hang that leads a partition', leader, frozen),
    nemesis('coordinator-kill', 'ends the broker that coordinates the group, and starts it again', coordinator, killed),
    nemesis('coordinator-freeze', 'lets the broker hang that coordinates the group', coordinator, frozen),
  ]
}
