import { stopKafkaServers } from './engines/kafka.ts'
import { playShortRound } from './short-round.ts'

// One broker takes a third of the time of three.
process.env.MILLRACE_PROOF_BROKERS = '1'

// D33 X153
playShortRound('no promise is broken on Kafka while processes, the wire, the broker and the group are struck', {
  engine: 'kafka',
  seed: 20_261_125,
  nemeses: [
    ...['kill', 'pause', 'term', 'opening', 'rolling', 'wire-cut'],
    ...['broker-kill', 'broker-freeze', 'rebalances', 'poison'],
  ],
  jobs: 500,
  faults: 10,
  stopServers: stopKafkaServers,
})
