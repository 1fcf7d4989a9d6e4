/** Makes the history of the store from what workers say and from counts. */
import type { Counts, Engine } from '../engine/engine.ts'
import { addMarks, type Mark } from '../engine/history/marks.ts'
import { HELD_MS } from '../engine/history/resolutions.ts'
import { readTallies, type Tally, TallyWriter, TypeTally } from '../engine/history/tally.ts'
import { type Beat, presenceIn, type WithPresence } from '../engine/presence.ts'
import type { Records } from '../engine/records.ts'
import { type Clock, sharedWait } from '../time/clock.ts'
import { ChangedError, HistoryBlocks, type Sample } from './history-blocks.ts'
import type { Duty } from './leader-election.ts'
import { FIRST_PASS_MS, type KeeperParts } from './parts.ts'

const EVERY_MS = 60_000
/** Another keeper wrote at the same time. */
const AGAIN_MS = 1_000
/** Tallies of more writers are taken in turn, so that what a block has to remember of them stays small. */
const WRITERS_MAX = 500
/** Counting the store takes at most 1 % of the time, however large it is. */
const COUNT_REST = 100

/**
 * Writes the history once a minute if anything has changed, and every ten minutes otherwise. Another keeper may take over
 * at any moment: what workers have said by then is counted once, by one of them.
 */
export function historyDuty(
  { engine, clock, events }: Pick<HistoryParts, 'engine' | 'clock'> & Pick<KeeperParts, 'events'>,
  keeper: string,
  records: Records,
): Duty {
  const terms = new WeakMap<AbortSignal, HistoryTerm>()
  const reaped = new Map<string, TypeTally>()
  return {
    name: 'history',
    perform: async ({ signal }) => {
      const term = terms.get(signal)
      if (term !== undefined) return term.pass()
      terms.set(signal, new HistoryTerm({ engine, clock, records, reaped }))
      return sharedWait(clock, FIRST_PASS_MS)
    },
    // Nobody else tells of an attempt whose worker died.
    onChange: () =>
      events.on('lease.reaped', ({ job: { type }, outcome, worker }) => {
        if (worker !== keeper || outcome.kind === 'release' || outcome.kind === 'complete') return
        const tally = reaped.get(type) ?? new TypeTally(clock.nowMs() - clock.monotonicMs())
        reaped.set(type, tally)
        tally.addReaped(outcome.kind, clock.monotonicMs())
      }),
  }
}

interface HistoryParts {
  readonly engine: Pick<Engine, 'counts' | 'records'> & WithPresence
  readonly clock: Clock
  readonly records: Records
  /** What this keeper has reaped, by type. */
  readonly reaped: ReadonlyMap<string, TypeTally>
}

/** What is remembered from one pass to the next. */
interface Counted {
  readonly counts: Counts
  readonly atMs: number
  /** By type, 0 or less: jobs have left the store of which no worker has told yet. */
  readonly owed: ReadonlyMap<string, number>
}

/** From the time a keeper leads until it no longer does. */
export class HistoryTerm {
  readonly #parts: HistoryParts
  readonly #own: TallyWriter
  readonly #blocks: HistoryBlocks
  #counted: Counted | null = null
  #written: Sample | null = null
  #countAtMs = 0
  /** Marks of workers that were added in this term, and the versions that ran at the last look. */
  readonly #marked = new Set<string>()
  #versions: ReadonlySet<string> = new Set()

  constructor(parts: HistoryParts) {
    this.#parts = parts
    this.#own = new TallyWriter(parts.records)
    this.#blocks = new HistoryBlocks(parts.records)
  }

  /** Answers in how many milliseconds it wants to look again. */
  async pass(): Promise<number> {
    const { records, clock, reaped } = this.#parts
    await this.#own.write(reaped, clock.nowMs() - clock.monotonicMs())
    await this.#blocks.read(clock.nowMs())
    const all = readTallies(await records.list('tally'))
    const writers = new Set([...new Set(all.map(({ writer }) => writer))].slice(0, WRITERS_MAX))
    const tallies = all.filter(({ writer }) => writers.has(writer))
    const counted = await this.#count(tallies)
    const sample = counted === null ? null : this.#sampleOf(counted, tallies)
    try {
      await this.#blocks.write(tallies, sample, clock.nowMs())
    } catch (error) {
      if (error instanceof ChangedError) return AGAIN_MS
      throw error
    }
    this.#counted = counted?.now ?? this.#counted
    this.#written = sample ?? this.#written
    const names = tallies.map(({ name }) => name)
    if (names.length > 0) await records.remove('tally', names)
    await this.#mark()
    return tallies.length < all.length ? 0 : sharedWait(clock, EVERY_MS)
  }

  /** Null when it was counted too recently for its size. */
  async #count(tallies: readonly Tally[]): Promise<{ now: Counted; enqueued: ReadonlyMap<string, number> } | null> {
    const { engine, clock } = this.#parts
    const startedMs = clock.monotonicMs()
    if (startedMs < this.#countAtMs) return null
    const counts = await engine.counts()
    const endedMs = clock.monotonicMs()
    this.#countAtMs = endedMs + (endedMs - startedMs) * COUNT_REST
    const atMs = clock.nowMs()
    const before = this.#counted
    const [owed, enqueued] = [new Map<string, number>(), new Map<string, number>()]
    if (before === null) return { now: { counts, atMs, owed }, enqueued }
    const finished = finishedIn(tallies)
    for (const type of new Set([...Object.keys(before.counts), ...Object.keys(counts), ...finished.keys()])) {
      const more = openOf(counts, type) - openOf(before.counts, type)
      const came = more + (finished.get(type) ?? 0) + (before.owed.get(type) ?? 0)
      if (came > 0) enqueued.set(type, came)
      else if (came < 0) owed.set(type, came)
    }
    return { now: { counts, atMs, owed }, enqueued }
  }

  /** Null when it would say the same again. */
  #sampleOf(
    { now: { counts, atMs }, enqueued }: { now: Counted; enqueued: ReadonlyMap<string, number> },
    tallies: readonly Tally[],
  ): Sample | null {
    const before = this.#written
    const isOld = before === null || atMs - before.atMs >= HELD_MS - EVERY_MS
    const isNews = isOld || enqueued.size > 0 || tallies.length > 0 || !isSame(before.counts, counts)
    return isNews ? { counts, atMs, enqueued } : null
  }

  async #mark(): Promise<void> {
    const { engine, clock, records } = this.#parts
    const beats = (await presenceIn(engine)?.list()) ?? []
    const versions = new Set(beats.flatMap(({ work }) => work?.version ?? []))
    const marks = [...startMarks(beats), ...goneMarks(this.#versions, versions, clock.nowMs())]
    const added = marks.filter(({ key }) => !this.#marked.has(key))
    this.#versions = versions
    if (added.length === 0) return
    await addMarks(records, added)
    for (const { key } of added) this.#marked.add(key)
  }
}

/** Workers of a version that start within a minute are one mark. */
function startMarks(beats: readonly Beat[]): readonly Mark[] {
  const marks = new Map<string, Mark>()
  for (const { work } of beats) {
    if (work?.version === undefined) continue
    const key = `started ${work.version} ${Math.floor(work.startedAtMs / EVERY_MS)}`
    const text = `Workers of version ${work.version} started`
    const atMs = Math.min(work.startedAtMs, marks.get(key)?.atMs ?? work.startedAtMs)
    marks.set(key, { kind: 'deploy', type: null, key, text, atMs })
  }
  return [...marks.values()]
}

function goneMarks(before: ReadonlySet<string>, now: ReadonlySet<string>, nowMs: number): readonly Mark[] {
  const gone = [...before].filter((version) => !now.has(version))
  return gone.map((version) => ({
    ...{ kind: 'deploy', type: null, atMs: nowMs, text: `No worker of version ${version} is left` },
    key: `gone ${version} ${Math.floor(nowMs / EVERY_MS)}`,
  }))
}

/** Completed and dead, by type. */
function finishedIn(tallies: readonly Tally[]): ReadonlyMap<string, number> {
  const finished = new Map<string, number>()
  for (const [type, { completed, died }] of tallies.flatMap(({ block }) =>
    [...block.cells.values()].flatMap((types) => [...types]),
  )) {
    finished.set(type, (finished.get(type) ?? 0) + completed + died)
  }
  return finished
}

function openOf(counts: Counts, type: string): number {
  const { ready = 0, delayed = 0, inProgress = 0 } = counts[type] ?? {}
  return ready + delayed + inProgress
}

function isSame(one: Counts, other: Counts): boolean {
  const text = (counts: Counts): string =>
    JSON.stringify(Object.entries(counts).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return text(one) === text(other)
}
