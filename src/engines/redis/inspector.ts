import type { Controls, Counts, Inspector, JobFilter, TypeCounts } from '../../engine/engine.ts'
import type { Farewells } from '../../engine/farewells.ts'
import type { JobView } from '../../job/job.ts'
import type { JobState } from '../../job/states.ts'
import type { Clock } from '../../time/clock.ts'
import type { RedisDatabase } from './database.ts'
import type { Endings } from './endings.ts'
import { readHistory } from './history.ts'
import { publicId, queueOf, typeOf } from './keys.ts'
import { cancelScript } from './lua/controls.ts'
import {
  countsScript,
  findScript,
  gatherScript,
  historyScript,
  oldestScript,
  rowsScript,
  walkScript,
} from './lua/looking.ts'
import { listOf, type Place, type Row, toRow, toRows, toView } from './rows.ts'

export interface InspectorParts {
  readonly database: RedisDatabase
  readonly clock: Clock
  readonly endings: Endings
  readonly farewells: Farewells
}

export async function findRow(database: RedisDatabase, id: string): Promise<Row | null> {
  return (await findRows(database, [id]))[0] ?? null
}

/** Jobs that one script reads: Redis does nothing else meanwhile. */
const FOUND_MAX = 500

/** Each in the order of its id. */
export async function findRows(database: RedisDatabase, ids: readonly string[]): Promise<readonly (Row | null)[]> {
  const rows: (Row | null)[] = []
  for (let from = 0; from < ids.length; from += FOUND_MAX) {
    const answers = await database.run(findScript(), ids.slice(from, from + FOUND_MAX))
    rows.push(...listOf(answers).map(toRow))
  }
  return rows
}

function isOver(view: JobView): boolean {
  return view.state === 'completed' || view.state === 'dead_letter'
}

export function createInspector(parts: InspectorParts): Inspector {
  const { database } = parts
  return {
    find: async (ids) => (await findRows(database, ids)).map((row) => (row === null ? null : toView(row))),
    list: (filter) => list(database, filter),
    oldestDue: () => oldestDue(database),
    async history(id) {
      const [row, log] = listOf(await database.run(historyScript(), [id]))
      const found = toRow(row)
      return found === null ? [] : readHistory(found, listOf(log))
    },
    waitFor: (id, wait) => waitFor(parts, id, wait),
  }
}

async function waitFor(
  { database, clock, endings, farewells }: InspectorParts,
  id: string,
  { waitMs, signal }: Parameters<Inspector['waitFor']>[1],
): Promise<JobView | null> {
  const untilMs = clock.monotonicMs() + waitMs
  const stopExpecting = farewells.expect(id)
  try {
    for (;;) {
      const seen = endings.changes
      const row = await findRow(database, id)
      const view = (row === null ? null : toView(row)) ?? farewells.of(id)
      const ms = untilMs - clock.monotonicMs()
      if (row === null || view === null || isOver(view) || ms <= 0 || signal.aborted) return view
      await endings.wait(row, { ms, seen, signal })
    }
  } finally {
    stopExpecting()
  }
}

const PLACES_OF: Readonly<Record<JobState, readonly Place[]>> = {
  queued: ['wait', 'paused', 'prioritized', 'delayed', 'waiting-children'],
  in_progress: ['active'],
  completed: ['completed'],
  dead_letter: ['failed', 'ended'],
  failed: [],
}

const PLACES_ALL = Object.values(PLACES_OF).flat()

/** Sets up to this size are looked at whole; above it only the index is walked, which knows no foreign jobs. */
const GATHERED_MAX = 1_000
/** Entries of the index that one script looks at. */
const STEP = 500

async function list(database: RedisDatabase, filter: JobFilter): Promise<readonly JobView[]> {
  if (filter.limit < 1 || filter.state === 'failed') return []
  const gathered = await gather(database, filter)
  return gathered === null ? walk(database, filter) : pick(database, filter, gathered)
}

interface Found {
  readonly id: string
  readonly queue: string
  readonly bullId: string
}

/** Null when there are too many. The newest first. */
async function gather(database: RedisDatabase, { state, type, before }: JobFilter): Promise<readonly Found[] | null> {
  const places = state === undefined ? PLACES_ALL : PLACES_OF[state]
  const sets = places.map((place) => (place === 'ended' ? ':ended' : place)).join(',')
  const answer = await database.run(gatherScript(), [
    GATHERED_MAX,
    sets,
    ...(type === undefined ? [] : [queueOf(type)]),
  ])
  if (!Array.isArray(answer)) return null
  const found: Found[] = []
  for (let at = 0; at + 1 < answer.length; at += 2) {
    const [queue, bullId] = [String(answer[at]), String(answer[at + 1])]
    const id = publicId(typeOf(queue), bullId)
    if (before === undefined || id < before) found.push({ id, queue, bullId })
  }
  return found.sort((a, b) => (a.id < b.id ? 1 : -1))
}

/** A job may have moved on since: what no longer fits is left out, and the next one takes its place on the page. */
async function pick(
  database: RedisDatabase,
  { state, limit }: JobFilter,
  found: readonly Found[],
): Promise<readonly JobView[]> {
  const views: JobView[] = []
  for (let from = 0; from < found.length && views.length < limit; from += limit) {
    const part = found.slice(from, from + limit)
    const args = part.flatMap(({ queue, bullId }) => [queue, bullId])
    for (const row of toRows(await database.run(rowsScript(), args))) {
      const view = toView(row)
      if (view === null || (state !== undefined && view.state !== state)) continue
      if (views.length < limit && views.at(-1)?.id !== view.id) views.push(view)
    }
  }
  return views
}

async function walk(database: RedisDatabase, { state, type, before, limit }: JobFilter): Promise<readonly JobView[]> {
  const views: JobView[] = []
  const places = state === undefined ? '' : PLACES_OF[state].join(',')
  let below = before === undefined ? '' : `${before}:`
  do {
    const queue = type === undefined ? '' : queueOf(type)
    const answer = await database.run(walkScript(), [below, STEP, limit - views.length, queue, places])
    const [last, rows] = listOf(answer)
    for (const row of toRows(rows)) {
      const view = toView(row)
      if (view !== null) views.push(view)
    }
    below = typeof last === 'string' ? last : ''
  } while (below !== '' && views.length < limit)
  return views
}

async function oldestDue(database: RedisDatabase): Promise<JobView | null> {
  let oldest: JobView | null = null
  for (const row of toRows(await database.run(oldestScript(), []))) {
    const view = toView(row)
    if (view === null || view.state !== 'queued') continue
    if (oldest === null || isOlder(view, oldest)) oldest = view
  }
  return oldest
}

function isOlder(a: JobView, b: JobView): boolean {
  return a.runAtMs === b.runAtMs ? a.id < b.id : a.runAtMs < b.runAtMs
}

export async function countJobs({ database }: Pick<InspectorParts, 'database'>): Promise<Counts> {
  const counts: Record<string, TypeCounts> = {}
  for (const answer of listOf(await database.run(countsScript(), []))) {
    const [queue, ...numbers] = listOf(answer)
    const [ready = 0, delayed = 0, inProgress = 0, completed = 0, dead = 0] = numbers.map(Number)
    if (ready + delayed + inProgress + completed + dead === 0) continue
    counts[typeOf(String(queue))] = { ready, delayed, inProgress, completed, dead }
  }
  return counts
}

export function createControls({ database, endings }: Pick<InspectorParts, 'database' | 'endings'>): Controls {
  return {
    async cancel(id, { who, reason }) {
      const isCancelled = (await database.run(cancelScript(), [id, who, reason])) === 1
      if (isCancelled) endings.notify()
      return isCancelled
    },
  }
}
