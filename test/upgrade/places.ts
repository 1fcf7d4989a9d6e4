/** Empty stores for a rolling upgrade, by engine. */
import { startKafka } from '../servers/kafka.ts'
import { startRedis } from '../servers/redis.ts'
import type { UpgradeOptions } from './rolling.ts'
import { ADDITION, STORES } from './stores.ts'

type Place = Pick<UpgradeOptions, 'url' | 'migrates' | 'meanwhile' | 'plain'>

/** Kafka is another one, which `npm test` leaves out because its broker takes long to start. */
export const ENGINES: readonly string[] = [...STORES.map(({ name }) => name.toLowerCase()), 'redis']

/** Where there is a schema, it gets an addition while both versions work on it. */
export async function upgradeOn<Answer>(engine: string, run: (place: Place) => Promise<Answer>): Promise<Answer> {
  if (engine === 'kafka') {
    const server = await startKafka()
    const url = `${server.url}?group=rolling`
    return run({ url, migrates: false, plain: true }).finally(() => server.end())
  }
  if (engine === 'redis') {
    const server = await startRedis()
    return run({ url: server.url, migrates: false }).finally(() => server.end())
  }
  const store = await STORES.find(({ name }) => name.toLowerCase() === engine)?.makeStore()
  if (store === undefined) throw new Error(`'${engine}' is none of ${ENGINES.join(', ')}, kafka`)
  const meanwhile = (): Promise<void> => store.migrate([ADDITION])
  return run({ url: store.url, migrates: true, meanwhile }).finally(() => store.remove())
}
