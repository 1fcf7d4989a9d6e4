/** What the escrow workers add to `millrace serve`: `/actuator/health`, and the heartbeats of workers in the scrape. */
import type { MakeInstrument, RememberingPresence } from '../../src/observe/index.ts'
import type { Clock } from '../../src/time/clock.ts'
import { actuatorEndpoint } from './actuator.ts'
import { watchMetrics } from './metrics.ts'
import { Watch } from './watch.ts'

const none = async () => []

export const serving = {
  healthEndpoints: { '/actuator/health': actuatorEndpoint() },

  instruments(
    { engine }: { readonly engine: { readonly presence?: RememberingPresence } },
    clock: Clock,
  ): readonly MakeInstrument[] {
    const { presence } = engine
    if (presence === undefined) return []
    const watch = new Watch({ presence, lags: none, pending: none, clock })
    return [watchMetrics({ watch, dlqTopicOf: () => null }).instrument]
  },
}
