/** All faults that only Kafka knows. */
import type { KafkaServers } from '../engines/kafka-servers.ts'
import type { Nemesis } from '../scene.ts'
import { brokerNemeses } from './kafka-brokers.ts'
import { groupNemeses } from './kafka-group.ts'
import { recordNemeses } from './kafka-records.ts'
import { topicNemeses } from './kafka-topics.ts'

/** The round's own things on the brokers. */
export interface StruckKafka {
  readonly servers: KafkaServers
  readonly group: string
  /** Of all its topics of jobs. */
  readonly prefix: string
  /** Of the topics of its desk. */
  readonly desk: string
}

export function kafkaNemeses(struck: StruckKafka): readonly Nemesis[] {
  return [...brokerNemeses(struck), ...groupNemeses(struck), ...topicNemeses(struck), ...recordNemeses(struck)]
}
