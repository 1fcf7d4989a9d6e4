import type { Producer } from '../../../proof/workload/foreign.ts'
import { kafkaJars } from '../../servers/kafka-broker.ts'
import { runProgram } from './program.ts'

/** By the console producer of Kafka's own jars: a record whose value is the payload (src/engines/kafka/README.md). */
export function kafkaConsoleProducer(url: string): Producer {
  // A URL with several brokers is none for `URL`.
  const [address = '', query = ''] = url.replace(/^kafka:\/\//, '').split('?')
  const prefix = new URLSearchParams(query).get('prefix') ?? ''
  return {
    program: 'kafka-console-producer',
    priority: 5,
    attempts: 3,
    // A record without our header goes by the place where it stands.
    idOf: () => null,
    async produce(type, jobs) {
      const { program, classPath } = kafkaJars()
      const jvm = [
        '-Xmx128m',
        '-XX:TieredStopAtLevel=1',
        '-Dorg.slf4j.simpleLogger.defaultLogLevel=off',
        '-cp',
        classPath,
      ]
      // Without --sync it says that all is well also when the broker has refused a record.
      const options = ['--bootstrap-server', address, '--topic', `${prefix}${type}`, '--sync']
      const input = jobs.map(({ payload }) => `${payload}\n`).join('')
      await runProgram({ program, args: [...jvm, 'org.apache.kafka.tools.ConsoleProducer', ...options], input })
    },
  }
}
