/** What only Postgres has: commit settings, connections, rights, notifications, and dead rows that pile up. */
import type { Finding } from '../engine/engine.ts'
import { failure, formatAge, formatBytes, ok, plural, warning } from './findings.ts'

export function judgeDurability({
  fsync,
  pages,
  commit,
}: {
  readonly fsync: string
  readonly pages: string
  readonly commit: string
}): Finding {
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

const QUEUE_WARNING = 0.1

/** `usage`: the part of the queue of notifications that is used. */
export function judgeNotifications(usage: number): Finding {
  const used = `${(usage * 100).toFixed(1)} % of the queue of notifications is used`
  if (usage < QUEUE_WARNING) return ok('notifications', used)
  return failure(
    'notifications',
    `${used}: when it is full, every commit that notifies fails, and enqueues with it`,
    `A listening session stays in a long transaction. Find it in pg_stat_activity (query LIKE 'LISTEN%', state 'idle in transaction') and end it.`,
  )
}

export function judgeAutovacuum(autovacuum: string): readonly Finding[] {
  if (autovacuum === 'on') return []
  return [
    failure(
      'vacuum',
      'autovacuum is off on the whole server: dead rows stay, and every claim gets slower',
      'Set autovacuum = on in postgresql.conf and reload.',
    ),
  ]
}

export interface ConnectionFacts {
  readonly allowed: number
  readonly used: number
  /** Of this role; below 0: none. */
  readonly own_limit: number
  readonly own: number
}

const LEFT_PART_MIN = 0.1

/** `pool`: how many connections one process of Millrace opens at most, the listening one included. */
export function judgeConnections(found: ConnectionFacts, pool: number): Finding {
  const isOwnTighter = found.own_limit >= 0 && found.own_limit - found.own < found.allowed - found.used
  const [allowed, used] = isOwnTighter ? [found.own_limit, found.own] : [found.allowed, found.used]
  const left = Math.max(0, allowed - used)
  const text = `${used} of ${allowed} connections are used${isOwnTighter ? ' by this role' : ''}`
  if (left >= pool && left >= allowed * LEFT_PART_MIN) return ok('connections', text)
  return warning(
    'connections',
    `${text}: one more process of Millrace takes up to ${pool}`,
    'Lower ?pool= in the URLs, use a pooler (?pooler=transaction), or raise max_connections.',
  )
}

export interface RoleFacts {
  readonly role: string
  readonly isSuperuser: boolean
  /** Such as «INSERT on jobs». */
  readonly lacking: readonly string[]
}

export function judgeRights({ role, isSuperuser, lacking }: RoleFacts): Finding {
  if (lacking.length === 0)
    return ok('role', `'${role}' has every right of a worker${isSuperuser ? ', and is a superuser' : ''}`)
  return failure(
    'role',
    `'${role}' lacks ${lacking.join('; ')}`,
    `Run 'millrace migrate' as the owner of the tables with '?grant=${role}' in its URL.`,
  )
}

export interface WakeupFacts {
  readonly listen: boolean
  readonly prepare: boolean
  readonly pollMs: number
  /** Whether a notification arrived while the check waited for one. */
  readonly isHeard: boolean
}

export function judgeWakeups({ listen, prepare, pollMs, isHeard }: WakeupFacts): Finding {
  const poll = `a waiting worker looks every ${pollMs < 1_000 ? `${pollMs} ms` : formatAge(pollMs)}`
  if (!listen) {
    const how = prepare ? 'LISTEN is off' : 'LISTEN and prepared statements are off, as a transaction pooler needs it'
    return ok('wake-ups', `${how}; ${poll}`)
  }
  if (isHeard) return ok('wake-ups', `notifications arrive; besides, ${poll}`)
  return warning(
    'wake-ups',
    `notifications do not arrive at the listening connection; ${poll}`,
    'A pooler in transaction mode drops LISTEN: add ?pooler=transaction to the URL, which also turns prepared statements off, or connect past the pooler.',
  )
}

/** What keeps old row versions from being removed. */
export interface Holder {
  readonly kind: 'session' | 'prepared' | 'slot' | 'standby'
  readonly name: string
  readonly detail: string
  readonly age_ms: number | null
}

/** A transaction that is open longer than this slows claims down. */
const HELD_MS = 60_000

/** `seesAll`: whether this role may see the sessions of other roles. */
export function judgeHolders(holders: readonly Holder[], seesAll: boolean, heldMs = HELD_MS): readonly Finding[] {
  const held = holders.filter(({ age_ms: ageMs }) => ageMs === null || ageMs >= heldMs)
  if (held.length > 0) return held.map(judgeHolder)
  const blind = `; sessions of other roles are hidden from this one (GRANT pg_read_all_stats shows them)`
  return [ok('horizon', `nothing keeps dead rows from being removed${seesAll ? '' : blind}`)]
}

function judgeHolder({ kind, name, detail, age_ms: ageMs }: Holder): Finding {
  const age = ageMs === null ? '' : ` for ${formatAge(ageMs)}`
  const cost = 'dead rows cannot be removed meanwhile, and claims get slower'
  switch (kind) {
    case 'session':
      return warning(
        'horizon',
        `session ${name} (${detail}) has had a transaction open${age}: ${cost}`,
        `Find what it does, and end it if it is forgotten: SELECT pg_terminate_backend(${name}); idle_in_transaction_session_timeout ends such sessions by itself.`,
      )
    case 'prepared':
      return warning(
        'horizon',
        `the prepared transaction '${name}' of ${detail} is open${age}: ${cost}`,
        `COMMIT PREPARED or ROLLBACK PREPARED '${name.replaceAll("'", "''")}';`,
      )
    case 'slot':
      return warning(
        'horizon',
        `the replication slot '${name}' (${detail}) keeps what its reader has not taken: WAL, and perhaps dead rows`,
        `Start its reader, or if it is gone: SELECT pg_drop_replication_slot('${name}');`,
      )
    case 'standby':
      return warning(
        'horizon',
        `the standby '${name}' runs a long query and holds rows back by hot_standby_feedback: ${cost}`,
        'End the query on the standby, or set hot_standby_feedback = off there.',
      )
    default:
      return kind satisfies never
  }
}

export interface TableFacts {
  readonly name: string
  readonly live: number | null
  readonly dead: number | null
  readonly vacuumed_ms: number | null
  readonly clock_ms: number
  readonly bytes: number
  readonly frozen_age: number
  readonly unvacuumed: boolean
}

/** Fewer are removed before anyone notices. */
const DEAD_MIN = 50_000
const DEAD_PART_MAX = 0.5
/** Half of the way to the point at which the server refuses writes. */
const FROZEN_AGE_MAX = 1_000_000_000

export function judgeTable(table: TableFacts): readonly Finding[] {
  const { name, live, dead, vacuumed_ms: vacuumedMs, clock_ms: clockMs } = table
  const findings: Finding[] = []
  if (table.unvacuumed) {
    findings.push(
      failure(
        'vacuum',
        `autovacuum is off for ${name}: dead rows stay, and every claim gets slower`,
        `ALTER TABLE ${name} RESET (autovacuum_enabled);`,
      ),
    )
  }
  if (table.frozen_age > FROZEN_AGE_MAX) {
    findings.push(
      failure(
        'vacuum',
        `${name} was not frozen for ${table.frozen_age} transactions; at 2 billion the server refuses every write`,
        `End what holds the horizon, then run: VACUUM (FREEZE) ${name};`,
      ),
    )
  }
  const when = vacuumedMs === null ? 'never vacuumed yet' : `vacuumed ${formatAge(clockMs - vacuumedMs)} ago`
  const text = `${name}: about ${plural(live ?? 0, 'row')}, ${dead ?? 0} dead, ${formatBytes(table.bytes)}, ${when}`
  if ((dead ?? 0) > DEAD_MIN && (dead ?? 0) > (live ?? 0) * DEAD_PART_MAX) {
    const advice = `If the horizon is held, end that first; else run VACUUM ${name}; and raise autovacuum_vacuum_cost_limit.`
    findings.push(warning('vacuum', text, advice))
  } else findings.push(ok('vacuum', text))
  return findings
}
