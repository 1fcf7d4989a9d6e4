/** The server itself: its version, what it does with a commit, its clock, its connections, its queue of notifications. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, warning } from '../../../engine/findings.ts'
import { systemClock } from '../../../time/clock.ts'
import type { Queries } from '../database.ts'
import { ARRAY_NULLS_ADVICE, ARRAY_NULLS_OFF, ENCODING_ADVICE, wrongEncoding } from '../migrate.ts'
import { LOOK_AT_CONNECTIONS, LOOK_AT_SETTINGS } from './statements.ts'

interface Settings {
  readonly version: string
  readonly number: number
  readonly fsync: string
  readonly pages: string
  readonly commit: string
  readonly autovacuum: string
  readonly encoding: string
  readonly array_nulls: string
  readonly clock_ms: number
  readonly notifications: number
}

/** Two clocks of one network differ by less. */
const CLOCK_TOLERANCE_MS = 5_000
/** The oldest major version that its makers still mend in 2026. */
const MAINTAINED = 140_000
const QUEUE_WARNING = 0.1

export async function lookAtServer(queries: Queries): Promise<readonly Finding[]> {
  const beforeMs = systemClock.nowMs()
  const [settings] = await queries.rows<Settings>(LOOK_AT_SETTINGS)
  if (settings === undefined) return []
  const afterMs = systemClock.nowMs()
  return [
    lookAtVersion(settings),
    lookAtDurability(settings),
    lookAtClock(settings.clock_ms, beforeMs, afterMs),
    lookAtNotifications(settings.notifications),
    ...lookAtTexts(settings),
    ...lookAtAutovacuum(settings.autovacuum),
  ]
}

function lookAtVersion({ version, number }: Settings): Finding {
  if (number >= MAINTAINED) return ok('server version', `Postgres ${version}`)
  return warning(
    'server version',
    `Postgres ${version} gets no more corrections from its makers`,
    'Upgrade the server; Millrace runs on 13 and newer.',
  )
}

function lookAtDurability({ fsync, pages, commit }: Settings): Finding {
  if (fsync === 'off' || pages === 'off') {
    const which = fsync === 'off' ? 'fsync' : 'full_page_writes'
    return failure(
      'durability',
      `${which} is off: a power cut can corrupt the database, and acknowledged jobs with it`,
      `Set ${which} = on in postgresql.conf and restart, unless the data may be lost.`,
    )
  }
  if (commit === 'off') {
    return warning(
      'durability',
      'synchronous_commit is off: a crash of the server may undo the last acknowledged jobs',
      'ALTER ROLE … SET synchronous_commit = on for the roles that enqueue and work, unless losing the last commits is acceptable.',
    )
  }
  return ok('durability', `commits are synced (fsync on, synchronous_commit ${commit})`)
}

/** Leases and due times go by the server's clock alone; dates given by this machine do not. */
export function lookAtClock(serverMs: number, beforeMs: number, afterMs: number): Finding {
  const skewMs = serverMs < beforeMs ? serverMs - beforeMs : Math.max(0, serverMs - afterMs)
  if (Math.abs(skewMs) <= CLOCK_TOLERANCE_MS) return ok('clock', `this machine and the server agree to the second`)
  return warning(
    'clock',
    `the server's clock is ${formatAge(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} this machine's: leases are right, but dates and schedules given here fall due at another time`,
    'Synchronise both with a time server.',
  )
}

function lookAtNotifications(usage: number): Finding {
  const used = `${(usage * 100).toFixed(1)} % of the queue of notifications is used`
  if (usage < QUEUE_WARNING) return ok('notifications', used)
  return failure(
    'notifications',
    `${used}: when it is full, every commit that notifies fails, and enqueues with it`,
    `A session that listens stays in a long transaction; find it in pg_stat_activity (query LIKE 'LISTEN%', state 'idle in transaction') and end it.`,
  )
}

function lookAtTexts({ encoding, array_nulls: arrayNulls }: Settings): readonly Finding[] {
  return [
    ...(encoding === 'UTF8'
      ? []
      : [failure('encoding', wrongEncoding(encoding), `Move the jobs: ${ENCODING_ADVICE}.`)]),
    ...(arrayNulls === 'on' ? [] : [failure('array_nulls', ARRAY_NULLS_OFF, `As its owner ${ARRAY_NULLS_ADVICE}.`)]),
  ]
}

function lookAtAutovacuum(autovacuum: string): readonly Finding[] {
  if (autovacuum === 'on') return []
  return [
    failure(
      'vacuum',
      'autovacuum is off on the whole server: dead rows stay, and every claim gets slower',
      'Set autovacuum = on in postgresql.conf and reload.',
    ),
  ]
}

interface Connections {
  readonly allowed: number
  readonly used: number
  readonly own_limit: number
  readonly own: number
}

const LEFT_PART_MIN = 0.1

/** `pool`: how many one process of Millrace opens at most, the one that listens included. */
export async function lookAtConnections(queries: Queries, pool: number): Promise<readonly Finding[]> {
  const [found] = await queries.rows<Connections>(LOOK_AT_CONNECTIONS)
  return found === undefined ? [] : [judgeConnections(found, pool)]
}

export function judgeConnections(found: Connections, pool: number): Finding {
  const isOwnTighter = found.own_limit >= 0 && found.own_limit - found.own < found.allowed - found.used
  const [allowed, used] = isOwnTighter ? [found.own_limit, found.own] : [found.allowed, found.used]
  const left = Math.max(0, allowed - used)
  const text = `${used} of ${allowed} connections are used${isOwnTighter ? ' by this role' : ''}`
  if (left >= pool && left >= allowed * LEFT_PART_MIN) return ok('connections', text)
  return warning(
    'connections',
    `${text}: one more process of Millrace takes up to ${pool}`,
    'Lower ?pool= in the URLs, put a pooler between (?pooler=transaction), or raise max_connections.',
  )
}
