/** The consumer group: who is in it, and whether somebody works on every topic. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { ok, plural, warning } from '../../../engine/findings.ts'
import { lagOf } from './lag.ts'
import type { GroupView, Survey } from './survey.ts'

/** What our members join with. */
const PROTOCOL = 'cooperative-sticky'
const REBALANCING = ['PreparingRebalance', 'CompletingRebalance']

export function judgeGroup({ group, jobs }: Survey): readonly Finding[] {
  const { members, protocol, state } = group
  if (members.length === 0) return [judgeEmpty(group)]
  const hosts = [...new Set(members.map(({ host }) => host))]
  const text = `'${group.name}' has ${plural(members.length, 'member')} on ${hosts.join(', ')}`
  if (REBALANCING.includes(state)) {
    return [
      warning(
        'group',
        `${text}, and is sharing out its partitions now`,
        'Look again in a minute; if it never ends, a member is too slow to join (see its log), or members come and go.',
      ),
    ]
  }
  if (protocol !== PROTOCOL) {
    return [
      warning(
        'group',
        `${text} that share by '${protocol}': another program is in it, and workers cannot join`,
        'Give the workers a group of their own: ?group=',
      ),
    ]
  }
  const partitions = jobs
    .filter(({ name }) => members.some(({ topics }) => topics.includes(name)))
    .reduce((sum, topic) => sum + topic.partitions.length, 0)
  const idle = members.filter((member) => member.partitions === 0).length
  if (idle > 0) {
    return [
      warning(
        'group',
        `${text}, and ${idle} of them have no partition, because the topics have ${partitions}`,
        'Add partitions (kafka-topics.sh --alter --partitions), or run fewer workers with more concurrency.',
      ),
    ]
  }
  return [ok('group', `${text} and ${plural(partitions, 'partition')}`)]
}

function judgeEmpty({ name, state, hasCommits }: GroupView): Finding {
  if (state === 'Dead' && hasCommits) {
    return warning(
      'group',
      `'${name}' is a group of Kafka's newer protocol: another program uses it, and workers cannot join`,
      'Give the workers a group of their own: ?group=',
    )
  }
  return ok('group', hasCommits ? `'${name}' has no member now` : `'${name}' has never worked on anything`)
}

/** Records that wait, and no member that reads their topic. */
export function judgeWorkers({ group, jobs }: Survey): readonly Finding[] {
  const read = new Set(group.members.flatMap(({ topics }) => topics))
  const unread = jobs
    .filter(({ name }) => !read.has(name))
    .map((topic) => ({ name: topic.name, lag: lagOf(topic) }))
    .filter(({ lag }) => lag > 0)
  if (unread.length === 0) return [ok('workers', 'every topic with records that wait is read by a worker')]
  return unread.map(({ name, lag }) =>
    warning(
      'workers',
      `'${name}' has ${plural(lag, 'record')} that wait, and no worker of the group '${group.name}' reads it`,
      `Start a worker of that type with ?group=${group.name}.`,
    ),
  )
}
