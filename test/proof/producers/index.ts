import type { Producer } from '../../../proof/workload/foreign.ts'
import { parseUrl } from '../../../src/engines/sqlite/url.ts'
import { bullmqProducer } from './bullmq.ts'
import { kafkaConsoleProducer } from './kafka-console.ts'
import { psqlProducer } from './psql.ts'
import { sqlite3Producer } from './sqlite3.ts'

/** The programs that write jobs into the store of this URL. None where the jobs are in the memory of one process. */
export function producersFor(url: string): readonly Producer[] {
  const [scheme] = url.split(':')
  switch (scheme) {
    case 'postgres':
    case 'postgresql':
      return [psqlProducer(url)]
    case 'sqlite':
      return [sqlite3Producer(parseUrl(url).database)]
    case 'redis':
      return [bullmqProducer(url)]
    case 'kafka':
      return [kafkaConsoleProducer(url)]
    default:
      return []
  }
}
