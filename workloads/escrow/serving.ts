/**
 * What the escrow workers add to `millrace serve`: `/actuator/health`, the heartbeats of workers in the scrape, and the
 * endpoints for dead letters.
 */
import type { Engine } from '../../src/engine/engine.ts'
import type { TopicsOfBroker } from '../../src/engine/open.ts'
import { presenceIn } from '../../src/engine/presence.ts'
import type { RouteTable } from '../../src/http/index.ts'
import type { MakeInstrument } from '../../src/observe/index.ts'
import type { Clock } from '../../src/time/clock.ts'
import { actuatorEndpoint } from './actuator.ts'
import { watchMetrics } from './metrics.ts'
import { Watch } from './watch.ts'

const none = async () => []

export const serving = {
  healthEndpoints: { '/actuator/health': actuatorEndpoint() },

  instruments({ engine }: { readonly engine: Pick<Engine, 'records'> }, clock: Clock): readonly MakeInstrument[] {
    const presence = presenceIn(engine)
    if (presence === undefined) return []
    const watch = new Watch({ presence, lags: none, pending: none, clock })
    return [watchMetrics({ watch, dlqTopicOf: () => null }).instrument]
  },

  async routes(topics: TopicsOfBroker, clock: Clock): Promise<RouteTable> {
    const { topicRoutes } = await import('./dead-letters/routes.ts')
    return topicRoutes(topics, clock)
  },
}
