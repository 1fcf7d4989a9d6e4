import type { TopicLag } from '../../engine/topics.ts'
import type { Admin } from './driver.ts'
import { nameOf } from './holding.ts'
import { committedOf, offsetsOf } from './offsets.ts'

/** Document D's lag: the end of each partition less what the group has committed, by topic. */
export async function lagsOf(admin: Admin, groups: readonly string[]): Promise<readonly TopicLag[]> {
  const existing = new Set(await admin.listTopics())
  const lags = await Promise.all(groups.map((group) => lagsOfGroup(admin, group, existing)))
  return lags.flat()
}

async function lagsOfGroup(admin: Admin, group: string, existing: ReadonlySet<string>): Promise<readonly TopicLag[]> {
  const committed = [...(await committedOf(admin, group)).values()].filter(({ topic }) => existing.has(topic))
  const ends = await offsetsOf(admin, committed, -1n)
  return [...Map.groupBy(committed, ({ topic }) => topic)].map(([topic, places]) => ({
    group,
    topic,
    lag: places.reduce((sum, place) => sum + Math.max(0, Number((ends.get(nameOf(place)) ?? 0n) - place.offset)), 0),
  }))
}
