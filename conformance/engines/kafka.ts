import { setTimeout as pass } from 'node:timers/promises'
import type { Engine } from '../../src/engine/engine.ts'
import { connect } from '../../src/engines/kafka/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import { freshName, kafkaServer, withAdmin, withParameters } from '../../test/servers/kafka.ts'
import type { Harness } from '../harness.ts'

/** The broker lives in real time, so leases must outlast what a case may really take. */
export const KAFKA_LEASE_MS = 3_000

/**
 * Every view is a client of its own, with a group and topics that nobody else uses. One partition, so that two views
 * meet over it. A missing member is noticed soon, because cases wait for it in real time.
 */
export async function kafkaHarness(): Promise<Harness> {
  const server = await kafkaServer()
  const prefix = `${freshName()}.`
  const timing = 'partitions=1&session=4800&heartbeat=50&drain=200'
  const url = withParameters(server, `group=${freshName('group')}&prefix=${prefix}&${timing}`)
  const views: Engine[] = []
  const view = async (): Promise<Engine> => {
    const engine = await connect(url, { clock: systemClock, migrate: true })
    views.push(engine)
    return engine
  }
  const engine = await view()
  return {
    engine,
    clock: systemClock,
    url,
    other: view,
    advance: (ms) => pass(ms),
    destroy: async () => {
      for (const opened of views) await opened.close()
      await withAdmin(server, async (admin) => {
        const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
        if (topics.length > 0) await admin.deleteTopics({ topics })
      })
    },
  }
}
