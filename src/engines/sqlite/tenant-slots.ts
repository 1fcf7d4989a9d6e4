import { EngineError } from '../../errors.ts'
import type { SharedSlots } from '../../job/slots.ts'
import { toIso } from '../../time/iso.ts'
import { type Connection, changeSchema } from './database.ts'
import { byPlace, type Place, rankOf, type Wanted } from './ready-jobs.ts'

/** The tenant of a row; empty without one, also where another program wrote something else. */
const TENANT = `coalesce(CAST(CASE WHEN json_valid(tenant) THEN tenant ->> '$.orgId' END AS TEXT), '')`
const IN_INDEX = `(status = 'in_progress' OR (status = 'queued' AND waiting_for = 0))`

/** A claim chooses among this many tenants; the next one goes on behind them. */
const TENANTS_MAX = 256

/** In SQLite's order a number comes before every text, and bytes come behind: the end of all tenants where none is given. */
const BEFORE_ALL = -1
const UNTIL = `coalesce(?, x'')`

export const FIND_INDEX = `SELECT name FROM sqlite_master WHERE type = 'index' AND name = :name`

interface Statements {
  /** The first claimable job of the next tenant. */
  readonly tenant: string
  /** Of the same tenant, the first one of the next priority. */
  readonly rank: string
  readonly jobs: string
  readonly running: string
}

/** The index has no jobs of other types, so a type that is claimed otherwise does not pay for it. Types need no escaping beyond the quotes. */
const indexOf = (type: string): string => `idx_job_queue_slots_${type}`

export function statementsOf(type: string): Statements {
  const from = `FROM job_queue INDEXED BY "${indexOf(type)}" WHERE type = '${type}' AND ${IN_INDEX}`
  const claimable = `${from} AND status = 'queued' AND waiting_for = 0`
  return {
    tenant: `SELECT priority, scheduled_at, rowid, ${TENANT} ${claimable} AND ${TENANT} > ? AND ${TENANT} <= ${UNTIL}
ORDER BY ${TENANT}, priority, scheduled_at, rowid LIMIT 1`,
    rank: `SELECT priority, scheduled_at, rowid ${claimable} AND ${TENANT} = ? AND priority > ?
ORDER BY priority, scheduled_at, rowid LIMIT 1`,
    jobs: `SELECT priority, scheduled_at, rowid ${claimable} AND ${TENANT} = ? AND priority = ? AND scheduled_at <= ?
ORDER BY scheduled_at, rowid LIMIT ?`,
    running: `SELECT ${TENANT}, count(*) ${from} AND status = 'in_progress' GROUP BY ${TENANT}`,
  }
}

type Columns = [priority: number, due: string, rowid: number]

/** A tenant with ready jobs and a free slot. */
interface OpenTenant {
  readonly name: string
  running: number
  /** By the first job of each priority. */
  readonly runs: readonly Place[]
  /** What the tenant's next job is, and what comes after it; null until the second one is asked for. */
  head: Place
  rest: Place[] | null
}

/** A job that may start. `place`: that of the most urgent one which might have started in its stead. */
export interface TenantJob {
  readonly rowid: number
  readonly place: Place
}

/** The jobs of a type whose tenants have slots of their own. A claim passes over a tenant without looking at its jobs. */
export class TenantJobs {
  readonly #connection: Connection
  readonly #type: string
  readonly #sql: Statements
  /** The last tenant that a claim has looked at, where there were more. */
  #last: string | number = BEFORE_ALL
  #isIndexed = false

  constructor(connection: Connection, type: string) {
    this.#connection = connection
    this.#type = type
    this.#sql = statementsOf(type)
  }

  /** Whether the index of the type is there. */
  get isIndexed(): boolean {
    this.#isIndexed ||= this.#connection.prepare(FIND_INDEX).get({ name: indexOf(this.#type) }) !== undefined
    return this.#isIndexed
  }

  /** Inside a write transaction. */
  createIndex(mayChangeSchema: boolean): void {
    if (this.isIndexed) return
    const columns = `status, ${TENANT}, priority, scheduled_at`
    const sql = `CREATE INDEX "${indexOf(this.#type)}" ON job_queue(${columns}) WHERE type = '${this.#type}' AND ${IN_INDEX}`
    if (!mayChangeSchema) {
      throw new EngineError(
        'ERR_SCHEMA_MISSING',
        `type '${this.#type}' has slots for each tenant, which need an index; open with 'migrate', or run: ${sql}`,
      )
    }
    changeSchema(this.#connection.handle, sql)
  }

  /** When a job that has a free slot is due; null if there is none. */
  nextDue(slots: SharedSlots, now: string): string | null {
    let next: string | null = null
    for (const { runs } of this.#openTenants(slots)) {
      for (const { due } of runs) if (next === null || due < next) next = due
      if (next !== null && next <= now) break
    }
    return next
  }

  /** The tenant with the fewest running jobs first; among equals, and within a tenant, the most urgent job. */
  take(slots: SharedSlots, wanted: Wanted): readonly TenantJob[] {
    const open = this.#ready(slots, wanted)
    const taken: TenantJob[] = []
    while (taken.length < wanted.max) {
      let [best, first]: [OpenTenant | null, Place | null] = [null, null]
      for (const tenant of open) {
        if (first === null || byPlace(tenant.head, first) < 0) first = tenant.head
        if (best === null || isBefore(tenant, best)) best = tenant
      }
      if (best === null || first === null) break
      taken.push({ rowid: best.head.rowid, place: first })
      best.running += 1
      if (best.running >= slots.max || !this.#advance(best, slots, wanted)) open.delete(best)
    }
    return taken
  }

  #ready(slots: SharedSlots, { nowMs, ageingMs }: Wanted): Set<OpenTenant> {
    const now = toIso(nowMs)
    const open = new Set<OpenTenant>()
    let looked = 0
    for (const { name, running, runs } of this.#openTenants(slots)) {
      looked += 1
      const ready = runs
        .filter(({ due }) => due <= now)
        .map((run) => ({ ...run, rank: rankOf(run, nowMs, ageingMs) }))
        .sort(byPlace)
      const [head] = ready
      if (head !== undefined) open.add({ name, running, runs: ready, head, rest: null })
      if (looked < TENANTS_MAX || open.size === 0) continue
      this.#last = name
      break
    }
    return open
  }

  /** False if the tenant has no more ready jobs. */
  #advance(tenant: OpenTenant, { max }: SharedSlots, { nowMs, ageingMs, max: wanted }: Wanted): boolean {
    if (tenant.rest === null) {
      const jobs = this.#connection.prepareArrays(this.#sql.jobs)
      const most = 1 + Math.min(max - tenant.running, wanted)
      tenant.rest = tenant.runs
        .flatMap(({ priority }) => jobs.all(tenant.name, priority, toIso(nowMs), most) as Columns[])
        .map((columns) => placeOf(columns))
        .map((place) => ({ ...place, rank: rankOf(place, nowMs, ageingMs) }))
        .filter(({ rowid }) => rowid !== tenant.head.rowid)
        .sort(byPlace)
    }
    const next = tenant.rest.shift()
    if (next === undefined) return false
    tenant.head = next
    return true
  }

  /** Tenants with claimable jobs and a free slot, once round from behind the last one on. */
  *#openTenants({ max }: SharedSlots): Iterable<Pick<OpenTenant, 'name' | 'running' | 'runs'>> {
    const counts = this.#connection.prepareArrays(this.#sql.running).all() as [string, number][]
    const running = new Map(counts)
    const next = this.#connection.prepareArrays(this.#sql.tenant)
    const last = this.#last
    for (const [from, until] of [[last, null] as const, [BEFORE_ALL, last] as const]) {
      for (let after: string | number = from; ; ) {
        const found = next.get(after, until) as [...Columns, name: string] | undefined
        if (found === undefined) break
        const [priority, due, rowid, name] = found
        after = name
        const count = running.get(name) ?? 0
        if (count < max) yield { name, running: count, runs: this.#runs(name, placeOf([priority, due, rowid])) }
      }
    }
  }

  #runs(tenant: string, first: Place): readonly Place[] {
    const runs = [first]
    const next = this.#connection.prepareArrays(this.#sql.rank)
    for (let { priority } = first; ; ) {
      const found = next.get(tenant, priority) as Columns | undefined
      if (found === undefined) return runs
      priority = found[0]
      runs.push(placeOf(found))
    }
  }
}

function placeOf([priority, due, rowid]: Columns): Place {
  return { priority, due, rowid, rank: priority }
}

function isBefore(one: OpenTenant, other: OpenTenant): boolean {
  return one.running === other.running ? byPlace(one.head, other.head) < 0 : one.running < other.running
}
