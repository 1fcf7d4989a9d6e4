/**
 * What the escrow workers add to `millrace serve`, `start` and `work`: `/actuator/health`, their metrics, alerts and archive,
 * and the endpoints for dead letters.
 */
import type { ObservedProcess, ServingExtensions, WatchedTopic, WatchedTopics } from '../../src/cli/extensions.ts'
import type { TopicLag } from '../../src/engine/open.ts'
import { type KnownWorkers, presenceIn } from '../../src/engine/presence.ts'
import { UnsupportedError } from '../../src/errors.ts'
import type { Duty } from '../../src/keeper/side-duties.ts'
import { actuatorEndpoint } from './actuator.ts'
import { type AlarmRules, watchRules } from './alarms.ts'
import { tellArrivals } from './arrivals.ts'
import type { OpenTopicDesk } from './dead-letters/topic-desk.ts'
import { type WatchMetrics, watchMetrics } from './metrics.ts'
import { Watch } from './watch.ts'

export const serving: ServingExtensions = {
  async observe(served) {
    const { mill, broker, watched, log } = served
    const presence = presenceIn(mill.engine)
    if (watched !== null && presence === undefined)
      log.warn('Heartbeats are not kept, so nobody is told of missing or stuck workers; add --presence redis://…')
    const watch = watchOf(served, presence)
    const dlqTopicOf = (type: string): string | null =>
      watched?.topics.find(({ topic }) => topic === type)?.dlq ?? broker?.dlqTopicOf(type) ?? null
    // The workers of the preset ought to send some.
    const heartbeats = presence !== undefined || watched !== null
    const metrics = watchMetrics({ dlqTopicOf, heartbeats, ...(watch !== null && { watch }) })
    const expected = presence === undefined ? [] : (watched?.workers ?? [])
    const desk = await openDesk(served, metrics)
    return {
      healthEndpoints: { '/actuator/health': actuatorEndpoint({ expected }) },
      instruments: [metrics.instrument],
      routes: desk?.routes ?? {},
      duties:
        desk === null ? [] : (watched?.topics ?? []).map((topic) => archiveDuty(desk.desk, topic, served, metrics)),
      startAlerting(start) {
        if (watched === null) return start([], null)
        const rules = rulesOf(watched, expected)
        const known = watchRules(rules).filter(({ about }) => presence !== undefined || about !== 'workers')
        return tellArrivals(start(known, watch), { ...rules, events: mill.events, dlqTopicOf, log })
      },
    }
  },
}

function rulesOf({ topics }: WatchedTopics, expected: readonly string[]): AlarmRules {
  return {
    expected,
    lagLimits: (name) => topics.find(({ topic }) => topic === name)?.lag ?? null,
    isFinancial: (name) => topics.some(({ dlq, isFinancial }) => isFinancial && dlq === name),
  }
}

/** Null where there are neither heartbeats nor topics. */
function watchOf({ mill, broker, clock }: ObservedProcess, presence: KnownWorkers | undefined): Watch | null {
  if (presence === undefined && broker === null) return null
  let last: readonly TopicLag[] = []
  return new Watch({
    clock,
    presence: presence ?? unknownWorkers(mill.engine.name),
    lags: async () => {
      last = (await broker?.lags()) ?? []
      return last
    },
    pending: async () => (await broker?.pendingByTopic()) ?? [],
    // The group of a worker has its name. Retries last minutes, so those of the reading before will do.
    retrying: (worker) =>
      last.filter(({ group }) => group === worker).reduce((sum, { delayed = 0 }) => sum + delayed, 0),
  })
}

function unknownWorkers(engine: string): KnownWorkers {
  const refuse = (): Promise<never> =>
    Promise.reject(new UnsupportedError({ engine, limit: 'keeps no heartbeats; add --presence redis://…' }))
  return { list: refuse, seen: refuse }
}

/** Null where queues are no topics. */
async function openDesk({ broker, clock }: ObservedProcess, { onReplayed }: WatchMetrics) {
  if (broker === null) return null
  const [{ deskOn }, { dlqRoutes }] = await Promise.all([
    import('./dead-letters/topic-desk.ts'),
    import('./dead-letters/routes.ts'),
  ])
  const desk = deskOn(broker, { clock, onReplayed })
  return desk === null ? null : { desk, routes: dlqRoutes(desk) }
}

/** Once a day, for each topic, so that one that fails holds up no other. Two processes that archive at the same moment write a letter twice, under one id. */
function archiveDuty(
  desk: OpenTopicDesk,
  { topic, dlq, isFinancial }: WatchedTopic,
  { log }: ObservedProcess,
  { onArchived }: WatchMetrics,
): Duty {
  return {
    name: `archive dead letters of ${topic}`,
    every: '1d',
    async run() {
      const { archived } = await desk.archive({ topic, isFinancial })
      onArchived(dlq, archived)
      if (archived > 0) log.info('Dead letters were archived', { topic: dlq, count: archived })
    },
  }
}
