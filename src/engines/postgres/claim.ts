import { randomBytes } from 'node:crypto'
import type { ClaimRequest, SubscribedType, Subscription } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import { systemClock } from '../../time/clock.ts'
import type { Cursor, Cursors } from './cursors.ts'
import type { Database, Queries } from './database.ts'
import { CLAIM_LIMITED, MOVE_STARTS, NAME_LIMITS, READ_CLAIMED } from './limit-statements.ts'
import { fromPlain, type JobRow, type PlainRow, toLease } from './rows.ts'
import { BURY_EXHAUSTED, CLAIM, CLAIM_EXPIRED, CLAIM_ONE, CLAIM_SILENT, NEXT_DUE, NEXT_EXPIRY } from './statements.ts'

type Bounds = Pick<ClaimRequest, 'max' | 'perType'>

interface Lane {
  readonly type: string
  readonly leaseMs: number
  /** How many of the type may be claimed now. */
  readonly bound: number
}

export interface Claimed {
  readonly leases: readonly Lease[]
  /** In how many milliseconds a rate limit lets the next one through; null when none holds anything back. */
  readonly freeInMs: number | null
}

/** One token for the whole batch: with the job's id it is unique to this claim. It begins with its holder. */
export function newToken(worker: string): string {
  return `${worker} ${randomBytes(12).toString('base64url')}`
}

/** Takes the most urgent due jobs of a consumer's types. */
export async function claimReady(
  database: Database,
  { types, bounds, worker, token, cursors }: Claiming,
): Promise<Claimed> {
  const lanes = types.map((type) => laneOf(type, bounds)).filter((lane) => lane.bound > 0)
  if (lanes.length === 0) return { leases: [], freeInMs: null }
  const { nowMs } = database
  const limited = types.filter((type) => type.limit !== undefined && lanes.some((lane) => lane.type === type.type))
  if (limited.length > 0)
    return claimLimited(database, { lanes, limited, max: bounds.max, worker, token, cursors, nowMs })
  return { leases: await take(database, { lanes, max: bounds.max, worker, token, cursors, nowMs }), freeInMs: null }
}

interface Claiming {
  readonly types: readonly SubscribedType[]
  readonly bounds: Bounds
  readonly worker: string
  readonly token: string
  readonly cursors: Cursors
}

function laneOf(type: SubscribedType, bounds: Bounds): Lane {
  const bound = Math.min(bounds.max, bounds.perType?.[type.type] ?? bounds.max)
  return { type: type.type, leaseMs: type.leaseMs, bound }
}

interface Taking {
  /** Not later than the statement. */
  readonly nowMs: number
  readonly lanes: readonly Lane[]
  readonly max: number
  readonly worker: string
  readonly token: string
  readonly cursors: Cursors
}

async function take(queries: Queries, taking: Taking): Promise<readonly Lease[]> {
  const { lanes, max, worker, token, cursors, nowMs } = taking
  const [only, ...others] = lanes
  const rows = await measured(cursors, lanes, (starts) =>
    only !== undefined && others.length === 0
      ? takeOne(
          queries,
          { ...only, bound: Math.min(max, only.bound) },
          { worker, token, start: starts[0] ?? null, nowMs },
        )
      : queries.rows<JobRow>(CLAIM, ...columnsOf(lanes, starts), max, worker, token),
  )
  return accept(queries, rows, { token, cursors })
}

async function measured<Row>(
  cursors: Cursors,
  lanes: readonly Lane[],
  claim: (starts: readonly (Cursor | null)[]) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const starts = lanes.map((lane) => cursors.of(lane.type))
  const finished = cursors.measure(starts.some((start) => start !== null))
  const rows = await claim(starts)
  finished()
  return rows
}

/** The first five parameters of a claim of several types. */
function columnsOf(lanes: readonly Lane[], starts: readonly (Cursor | null)[]): readonly unknown[] {
  return [
    lanes.map((lane) => lane.type),
    lanes.map((lane) => lane.bound),
    lanes.map((lane) => lane.leaseMs),
    starts.map((start) => start?.priority ?? 0),
    starts.map((start) => start?.since ?? '-infinity'),
  ]
}

function accept(
  queries: Queries,
  rows: readonly JobRow[],
  { token, cursors }: { readonly token: string; readonly cursors: Cursors },
): Promise<readonly Lease[]> {
  const ordered = [...rows].sort(byUrgency)
  cursors.advance(ordered)
  return bury(queries, ordered, token)
}

/** The end of the leases is told by the clock here, from before the statement was sent: never too late. */
async function takeOne(
  queries: Queries,
  { type, bound, leaseMs }: Lane,
  {
    worker,
    token,
    start,
    nowMs,
  }: Pick<Taking, 'worker' | 'nowMs'> & { readonly token: string; readonly start: Cursor | null },
): Promise<readonly JobRow[]> {
  const expiresMs = nowMs + leaseMs
  const { priority = 0, since = '-infinity' } = start ?? {}
  const rows = await queries.lists<PlainRow>(CLAIM_ONE, type, priority, since, bound, worker, token, leaseMs)
  return rows.map((row) => fromPlain(row, type, expiresMs))
}

function byUrgency(one: JobRow, other: JobRow): number {
  if (one.priority !== other.priority) return one.priority - other.priority
  if (one.run_ms !== other.run_ms) return one.run_ms - other.run_ms
  return (one.arrival ?? Number.POSITIVE_INFINITY) - (other.arrival ?? Number.POSITIVE_INFINITY)
}

/** What another program put back with its attempts used up is not started once more (I5). */
async function bury(queries: Queries, rows: readonly JobRow[], token: string): Promise<readonly Lease[]> {
  const exhausted = rows.filter((row) => row.attempt_count > Math.max(1, row.max_attempts))
  if (exhausted.length === 0) return rows.map((row) => toLease(row, token))
  await queries.rows(
    BURY_EXHAUSTED,
    exhausted.map((row) => row.id),
    token,
  )
  return rows.filter((row) => !exhausted.includes(row)).map((row) => toLease(row, token))
}

interface LimitedRow {
  readonly ids: readonly string[] | null
  /** Of how many limited types the row was free. */
  readonly locked: number
  readonly free_ms: number | null
  /** When the claim was recorded, as the server tells the time. */
  readonly now_ms: number
}

/** Claims of one limited type are short and come one after the other: so often is one that stood in the way waited for. */
const LIMIT_TRIES = 8
const LIMIT_WAIT_MS = 5

/** Claims of one limited type come one after the other over all processes; only so can the window be counted. */
async function claimLimited(database: Database, taking: TakingLimited): Promise<Claimed> {
  const types = taking.limited.map((type) => type.type)
  for (let tries = 1; ; tries += 1) {
    const row = await takeLimited(database, taking)
    const freeInMs = row?.free_ms ?? null
    if (row !== undefined && row.ids !== null) {
      const rows = await database.rows<JobRow>(READ_CLAIMED, row.ids, taking.token)
      const leases = await accept(database, rows, taking)
      if (leases.length > 0) moveStarts(database, types, row.now_ms)
      return { leases, freeInMs }
    }
    const isAll = row?.locked === types.length
    if (isAll || tries === LIMIT_TRIES) return { leases: [], freeInMs: isAll ? freeInMs : LIMIT_WAIT_MS }
    // Or someone has removed the row.
    if (tries === 1) await nameLimits(database, taking.limited)
    else await systemClock.sleep(LIMIT_WAIT_MS * Math.random())
  }
}

/**
 * After this turn of the event loop, in which the handlers start. Nobody waits for it: should it fail, the window counts
 * from the claim, and what is wrong with the server the next claim tells.
 */
function moveStarts(database: Database, types: readonly string[], sinceMs: number): void {
  setImmediate(() => void database.rows(MOVE_STARTS, types, sinceMs).catch(() => {}))
}

/** Makes the row that claims of a limited type lock. Before the first one. */
export async function nameLimits(database: Database, types: readonly SubscribedType[]): Promise<void> {
  const limited = types.filter((type) => type.limit !== undefined).map((type) => type.type)
  if (limited.length > 0) await database.rows(NAME_LIMITS, limited)
}

interface TakingLimited extends Taking {
  readonly limited: readonly SubscribedType[]
}

async function takeLimited(
  database: Database,
  { lanes, limited, max, worker, token, cursors }: TakingLimited,
): Promise<LimitedRow | undefined> {
  const limits = lanes.map((lane) => limited.find((type) => type.type === lane.type)?.limit ?? null)
  const [row] = await measured(cursors, lanes, (starts) =>
    database.rows<LimitedRow>(
      CLAIM_LIMITED,
      ...columnsOf(lanes, starts),
      max,
      worker,
      token,
      limits.map((limit) => limit?.max ?? null),
      limits.map((limit) => limit?.perMs ?? null),
      limited.map((type) => type.type),
    ),
  )
  return row
}

/** How long until the next job of these types falls due: 0 when one is due already, null when none waits. */
export async function nextDueInMs(
  database: Database,
  types: readonly SubscribedType[],
  perType: ClaimRequest['perType'],
  cursors: Cursors,
): Promise<number | null> {
  const open = types.map((type) => type.type).filter((type) => (perType?.[type] ?? 1) > 0)
  if (open.length === 0) return null
  const starts = open.map((type) => cursors.of(type))
  return leftMs(
    await database.rows<NextRow>(
      NEXT_DUE,
      open,
      starts.map((start) => start?.priority ?? 0),
      starts.map((start) => start?.since ?? '-infinity'),
    ),
  )
}

interface NextRow {
  readonly next_ms: number | null
  readonly now_ms: number
}

function leftMs([row]: readonly NextRow[]): number | null {
  if (row === undefined || row.next_ms === null) return null
  return Math.max(0, row.next_ms - row.now_ms)
}

export async function nextExpiryInMs(database: Database, subscription: Subscription): Promise<number | null> {
  return leftMs(await database.rows<NextRow>(NEXT_EXPIRY, typesOf(subscription)))
}

function typesOf({ types }: Subscription): readonly string[] | null {
  return types === 'every' ? null : types.map((type) => type.type)
}

/** How long a reaper holds what it took over: ample for one settle, short if it dies too. */
const REAPER_LEASE_MS = 30_000
/** A row that is processing and has no lease was marked by another program: so long may it be silent (E47, X173). */
export const SILENCE_MS = 300_000

/** Hands expired jobs to the reaper under a fresh token. */
export async function claimExpired(
  database: Database,
  subscription: Subscription,
  { max, token }: { readonly max: number; readonly token: string },
): Promise<readonly Lease[]> {
  const { types, worker } = subscription
  const leaseMs = types === 'every' ? REAPER_LEASE_MS : Math.max(...types.map((type) => type.leaseMs))
  const found: JobRow[] = []
  for (const statement of [CLAIM_EXPIRED, CLAIM_SILENT]) {
    const left = max - found.length
    if (left <= 0) break
    const rows = await database.rows<JobRow>(statement, left, typesOf(subscription), worker, token, SILENCE_MS, leaseMs)
    found.push(...rows)
  }
  return found.map((row) => toLease(row, token))
}
