/** What the doctor is told about a cluster: its nodes, each primary as a server, and the jobs of all types. It only reads. */
import { runChecks } from '../../doctor/findings.ts'
import { judgeCluster, judgeCoverage, judgeIndex, judgeReplicasToWrite, type PrimaryFacts } from '../../doctor/redis.ts'
import type { Finding } from '../../engine/engine.ts'
import { systemClock } from '../../time/clock.ts'
import type { Member } from './cluster/members.ts'
import type { TypeStores } from './cluster/stores.ts'
import { RedisDatabase } from './database.ts'
import {
  checkClock,
  checkRights,
  checkSchedules,
  checkServer,
  type Examination,
  judgeQueues,
  readIndex,
  readQueues,
  settingOf,
} from './doctor-facts.ts'
import type { HostPort } from './hosts.ts'
import { DEFAULTS } from './options.ts'

export async function diagnoseCluster(stores: TypeStores, examination: Examination): Promise<readonly Finding[]> {
  const { shared } = stores
  const views = await stores.nodes.views()
  const primaries = primariesIn(views)
  const findings = [...judgeCluster(primaries)]
  for (const primary of primaries) {
    if (primary.isFailed) continue
    const found = await runChecks([['server', () => checkNode(stores, primary)]])
    findings.push(...found.map((finding) => ({ ...finding, detail: `${primary.address}: ${finding.detail}` })))
  }
  const checks = await runChecks([
    ['rights', () => checkRights(shared.database)],
    [
      'queues',
      async () => {
        const facts = await Promise.all((await stores.every()).map(({ database }) => readQueues(database)))
        return judgeQueues(facts.flat(), examination.recoveryMaxMs)
      },
    ],
    [
      'index',
      async () => {
        const isDeep = examination.deep === true
        const facts = await Promise.all((await stores.every()).map(({ database }) => readIndex(database, isDeep)))
        const sum = (of: 'seen' | 'gone'): number => facts.reduce((total, one) => total + one[of], 0)
        return judgeIndex({ seen: sum('seen'), gone: sum('gone') })
      },
    ],
    ['schedules', () => checkSchedules(shared.database)],
  ])
  return [...findings, ...checks]
}

interface Primary extends PrimaryFacts, HostPort {}

/** By the newest claim of any view; a node that one view has forgotten may be in another. */
function primariesIn(views: readonly (readonly Member[])[]): readonly Primary[] {
  const newest = new Map<string, Member>()
  for (const member of views.flat()) {
    const known = newest.get(member.id)
    if (known === undefined || member.epoch > known.epoch || (member.epoch === known.epoch && member.isFailed)) {
      newest.set(member.id, member)
    }
  }
  const members = [...newest.values()]
  return members
    .filter(({ primaryId, slots }) => primaryId === null && slots.length > 0)
    .map(({ id, host, port, isFailed, slots }) => ({
      host,
      port,
      address: `${host}:${port}`,
      isFailed,
      slots: slots.reduce((sum, [from, to]) => sum + to - from + 1, 0),
      replicas: members.filter((other) => other.primaryId === id && !other.isFailed).length,
    }))
    .sort((a, b) => (a.address < b.address ? -1 : 1))
}

async function checkNode(stores: TypeStores, primary: Primary): Promise<readonly Finding[]> {
  const database = new RedisDatabase({
    source: stores.nodes.ofNode(primary),
    clock: systemClock,
    options: DEFAULTS,
  })
  try {
    // What `open` would refuse is a finding here.
    await database.reach(() => {})
    return [
      ...(await checkServer(database)),
      await checkClock(database),
      ...judgeCoverage(await settingOf(database, 'cluster-require-full-coverage')),
      ...judgeReplicasToWrite(await settingOf(database, 'min-replicas-to-write'), primary.replicas),
    ]
  } finally {
    database.close()
  }
}
