import type { TopicLag } from '../../engine/topics.ts'
import type { Admin } from './driver.ts'
import { nameOf } from './holding.ts'
import { committedOf, isFor, offsetsOf, topicIdsOf } from './offsets.ts'

/** Document D's lag: the end of each partition less what the group has committed, by topic. */
export async function lagsOf(admin: Admin, groups: readonly string[]): Promise<readonly TopicLag[]> {
  const existing = new Set(await admin.listTopics())
  const lags = await Promise.all(groups.map((group) => lagsOfGroup(admin, group, existing)))
  return lags.flat()
}

async function lagsOfGroup(admin: Admin, group: string, existing: ReadonlySet<string>): Promise<readonly TopicLag[]> {
  const committed = [...(await committedOf(admin, group)).values()].filter(({ topic }) => existing.has(topic))
  const [ends, ids] = await Promise.all([
    offsetsOf(admin, committed, -1n),
    topicIdsOf(
      admin,
      committed.map(({ topic }) => topic),
    ),
  ])
  // What was committed for a topic that was deleted says nothing about the one that has its name now.
  const nextOf = (place: (typeof committed)[number]): bigint => (isFor(place, ids.get(place.topic)) ? place.offset : 0n)
  return [...Map.groupBy(committed, ({ topic }) => topic)].map(([topic, places]) => ({
    group,
    topic,
    lag: places.reduce((sum, place) => sum + Math.max(0, Number((ends.get(nameOf(place)) ?? 0n) - nextOf(place))), 0),
  }))
}
