import type { JobFilter, Lookup } from '../../engine/engine.ts'
import { EngineError, UnknownJobError, UnsupportedError } from '../../errors.ts'
import type { JobView } from '../../job/job.ts'
import type { Clock } from '../../time/clock.ts'
import { explained } from './client-faults.ts'
import type { GroupLetters } from './dead-letters/letter-index.ts'
import { LETTER_STATES } from './dead-letters/states.ts'
import type { FoundLetter } from './dead-letters.ts'
import type { Admin, Client } from './driver.ts'
import { type GroupPlace, type GroupPlaces, phaseOf, placesOf } from './group-places.ts'
import { holdersOf, membersOf } from './members.ts'
import { newestOf, offsetsOf } from './offsets.ts'
import type { KafkaOptions } from './options.ts'
import { RangeReader } from './range-reader.ts'
import { type Coordinates, type LogRecord, letterId, nameOf, type PartitionName } from './record.ts'
import { comparePlaces, newestRecords, type TimedLog } from './record-pages.ts'
import { findFrom, timeOfId } from './record-search.ts'
import { deadView, isSettled, recordView } from './record-views.ts'

export interface LookupParts {
  readonly client: Client
  readonly admin: Admin
  readonly clock: Clock
  readonly options: KafkaOptions
  /** Topics that this process has used. */
  readonly topics: () => Iterable<string>
  readonly letters: GroupLetters
  /** Commits what this process has settled. */
  flush(): Promise<void>
}

/** What a list may bring into memory, and what a search may read. */
const LISTED_BYTES_MAX = 32 * 1_024 * 1_024
const SEARCHED_BYTES_MAX = 256 * 1_024 * 1_024
const READ_MAX = 1_000
/** Within this time a replay is marked as done, or it would not be found. */
const REPLAY_MS = 60_000
/** Pages that can go on from a record without a search for it. */
const REMEMBERED_MAX = 1_000

/** The records of the group's topics as jobs: by where they stand, and by what the group has committed. */
export class KafkaLookup implements Lookup {
  readonly #parts: LookupParts
  /** By the id of the last job of a page. */
  readonly #lasts = new Map<string, Coordinates>()
  #reader: RangeReader | null = null

  constructor(parts: LookupParts) {
    this.#parts = parts
  }

  async find(ids: readonly string[]): Promise<readonly (JobView | null)[]> {
    if (ids.length === 0) return []
    // A place names its topic, which need not be known otherwise.
    const topics = ids.flatMap((id) => (parsePlace(id, '/') ?? parsePlace(id, ':'))?.topic ?? [])
    const look = await this.#look(topics)
    const views = new Map<string, JobView | null>()
    for (const id of new Set(ids)) views.set(id, await this.#findOne(id, look))
    return ids.map((id) => views.get(id) ?? null)
  }

  async list({ state, type, limit, before }: JobFilter): Promise<readonly JobView[]> {
    if (state !== undefined && state !== 'in_progress') throw unanswerable(state)
    const topic = type === undefined ? undefined : this.#parts.options.prefix + type
    const look = await this.#look([], topic)
    const last = before === undefined ? null : await this.#lastOf(before, topic)
    const log = this.#log()
    const records =
      state === 'in_progress'
        ? await this.#started(log, look, { limit, last })
        : await newestRecords(log, look.places, { limit, ...(last !== null && { before: last }) })
    const views = await this.#views(records, look)
    const end = records.at(-1)
    if (end !== undefined) this.#remember(views.at(-1)?.id ?? '', end)
    return views
  }

  async oldestDue(): Promise<JobView | null> {
    const nowMs = this.#parts.clock.nowMs()
    const look = await this.#look()
    const waiting = look.places.flatMap((place) => {
      const offset = firstDue(place, nowMs)
      return offset === null ? [] : [{ ...place, offset: BigInt(offset) }]
    })
    const records = await this.#readEach(this.#log(), waiting)
    const due = (await this.#views(records, look)).filter(
      ({ state, runAtMs }) => state === 'queued' && runAtMs <= nowMs,
    )
    return due.sort((one, other) => one.runAtMs - other.runAtMs)[0] ?? null
  }

  async close(): Promise<void> {
    await this.#reader?.close()
  }

  /** At all topics of the group and these besides, or at one alone. */
  async #look(besides: readonly string[] = [], only?: string): Promise<GroupPlaces> {
    const { admin, options, topics, flush } = this.#parts
    await flush()
    return placesOf(admin, { ...options, topics: [...topics(), ...besides] }, only)
  }

  async #findOne(id: string, look: GroupPlaces): Promise<JobView | null> {
    const found = await this.#resolve(id, look)
    if (found === null) return null
    if ('letter' in found) return deadView(found, this.#parts.options.prefix)
    return (await this.#views([found], look))[0] ?? null
  }

  /**
   * The record that is the job now, or the letter that it has died with. `topic/partition/offset` is the record at that
   * place. Any other id is a job's, which a replay has too: then the last one is meant.
   */
  async #resolve(id: string, look: GroupPlaces): Promise<LogRecord | FoundLetter | null> {
    const log = this.#log(SEARCHED_BYTES_MAX)
    const place = parsePlace(id, '/')
    if (place !== null) return (await this.#readEach(log, [place], look))[0] ?? null
    const [letter = null] = await this.#parts.letters.find([id], LETTER_STATES)
    if (letter !== null && letter.state.state !== 'replayed') return letter
    if (letter !== null)
      return (await findFrom(log, behind(look, letter), { id, timeMs: replayedFromMs(letter) })) ?? letter
    const origin = parsePlace(id, ':')
    if (origin !== null) return (await this.#readEach(log, [origin], look))[0] ?? null
    const timeMs = timeOfId(id)
    return timeMs === null ? null : findFrom(log, look.places, { id, timeMs })
  }

  /** It may be of another type than those that are listed. */
  async #lastOf(id: string, topic: string | undefined): Promise<LogRecord> {
    const look = await this.#look(topic === undefined ? [] : [topic])
    const known = this.#lasts.get(id)
    const log = this.#log()
    const found =
      known === undefined ? await this.#resolve(id, look) : ((await this.#readEach(log, [known], look))[0] ?? null)
    const record =
      found !== null && 'letter' in found ? (await this.#readEach(log, [found.letter.failed()], look))[0] : found
    if (record === null || record === undefined) throw new UnknownJobError(id)
    return record
  }

  #remember(id: string, { topic, partition, offset }: Coordinates): void {
    this.#lasts.delete(id)
    this.#lasts.set(id, { topic, partition, offset })
    const [oldest] = this.#lasts.keys()
    if (this.#lasts.size > REMEMBERED_MAX && oldest !== undefined) this.#lasts.delete(oldest)
  }

  /** What was handed out and not settled when it was last committed. */
  async #started(
    log: TimedLog,
    { places }: GroupPlaces,
    { limit, last }: { readonly limit: number; readonly last: LogRecord | null },
  ): Promise<readonly LogRecord[]> {
    const nowMs = this.#parts.clock.nowMs()
    const started = places.flatMap((place) => {
      const offsets = [...place.retryStates].filter(([, retryState]) => phaseOf(retryState, nowMs) === 'started')
      const own = offsets.map(([offset]) => offset).filter((offset) => offset < place.end && !isSettled(place, offset))
      const { topic, partition } = place
      return own
        .sort((one, other) => other - one)
        .slice(0, last === null ? limit : own.length)
        .map((offset) => ({ topic, partition, offset: BigInt(offset) }))
    })
    const records = (await this.#readEach(log, started)).toSorted(newestFirst)
    return (last === null ? records : records.filter((record) => newestFirst(last, record) < 0)).slice(0, limit)
  }

  async #views(records: readonly LogRecord[], { places }: GroupPlaces): Promise<readonly JobView[]> {
    const { letters, clock, options, admin } = this.#parts
    const byName = new Map(places.map((place) => [nameOf(place), place]))
    const placed = records.flatMap((record) => {
      const place = byName.get(nameOf(record))
      return place === undefined ? [] : [{ record, place }]
    })
    const settled = placed.filter(({ record, place }) => isSettled(place, Number(record.offset)))
    const found = await letters.withIds(
      new Set(settled.flatMap(({ record, place }) => letterIdsOf(record, place, options.group))),
      new Set(settled.map(({ record }) => record.topic)),
    )
    const isAnyOpen = placed.length > settled.length
    const holders = isAnyOpen ? holdersOf(await membersOf(admin, options)) : new Map<string, string>()
    const nowMs = clock.nowMs()
    return placed.map(({ record, place }) =>
      recordView(record, {
        ...{ group: options.group, place, prefix: options.prefix, nowMs },
        letter: letterIdsOf(record, place, options.group).flatMap((id) => found.get(id) ?? [])[0],
        holder: holders.get(nameOf(record)) ?? null,
      }),
    )
  }

  /** Those that are still there. With a look: in topics of the group alone. */
  async #readEach(log: TimedLog, wanted: readonly Coordinates[], look?: GroupPlaces): Promise<readonly LogRecord[]> {
    const isOwn = (one: Coordinates): boolean =>
      look === undefined ||
      look.places.some(
        ({ start, end, ...place }) => nameOf(place) === nameOf(one) && one.offset >= start && one.offset < end,
      )
    const records: LogRecord[] = []
    for (const one of wanted.filter(isOwn)) {
      const at = Number(one.offset)
      records.push(...(await log.read(one, at, at + 1)))
    }
    return records
  }

  /** For one call, which may read so many bytes. */
  #log(bytesMax = LISTED_BYTES_MAX): TimedLog {
    const { admin, client, options, clock } = this.#parts
    this.#reader ??= new RangeReader(client, options, clock, options.isolation)
    const reader = this.#reader
    let bytes = 0
    return {
      offsetsAt: async (places, timeMs) => numbered(await offsetsOf(admin, places, BigInt(timeMs))),
      newest: (places) => newestOf(admin, places),
      read: async (place, from, to) => {
        const records: LogRecord[] = []
        for (let next = from; next < to; ) {
          const range = { from: BigInt(next), to: BigInt(to), max: READ_MAX }
          const found = await explained(reader.read(place, range))
          const last = found.at(-1)
          if (last === undefined) break
          records.push(...found)
          bytes += found.reduce((sum, { value }) => sum + (value?.length ?? 0), 0)
          if (bytes > bytesMax) throw tooLarge(place, bytesMax)
          next = Number(last.offset) + 1
        }
        return records
      },
    }
  }
}

/** A replay goes to the partition of its letter's record, behind it. */
function behind({ places }: GroupPlaces, { letter }: FoundLetter): readonly GroupPlace[] {
  const failed = letter.failed()
  const own = places.filter((place) => nameOf(place) === nameOf(failed))
  return own.map((place) => ({ ...place, start: Math.max(place.start, Number(failed.offset) + 1) }))
}

/** A batch of replays is written before it is marked as done. */
function replayedFromMs({ letter, state }: FoundLetter): number {
  return Math.max(letter.deadAtMs, (state.sinceMs ?? 0) - REPLAY_MS)
}

/** The broker answers -1 where there is no such record. */
function numbered(offsets: ReadonlyMap<string, bigint>): ReadonlyMap<string, number> {
  return new Map([...offsets].flatMap(([name, offset]) => (offset < 0n ? [] : [[name, Number(offset)]])))
}

/** Of what neither was settled nor runs nor waits for its time. */
function firstDue(place: GroupPlace, nowMs: number): number | null {
  const isOver = (offset: number): boolean => {
    const retryState = place.retryStates.get(offset)
    return retryState !== undefined && (retryState.failure !== undefined || phaseOf(retryState, nowMs) !== 'due')
  }
  for (let offset = Math.max(place.start, place.position); offset < place.end; offset += 1) {
    const run = place.finished.find(([from, to]) => offset >= from && offset < to)
    if (run !== undefined) offset = run[1] - 1
    else if (!isOver(offset)) return offset
  }
  return null
}

function newestFirst(one: LogRecord, other: LogRecord): number {
  if (one.timestampMs !== other.timestampMs) return other.timestampMs - one.timestampMs
  return comparePlaces(one, other) || Number(other.offset - one.offset)
}

function parsePlace(id: string, separator: '/' | ':'): Coordinates | null {
  const [topic = '', partition = '', offset = '', ...more] = id.split(separator)
  if (topic === '' || !/^\d{1,9}$/.test(partition) || !/^\d{1,15}$/.test(offset) || more.length > 0) return null
  return { topic, partition: Number(partition), offset: BigInt(offset) }
}

function unanswerable(state: string): UnsupportedError {
  const advice = state === 'dead_letter' ? `see 'millrace dead'` : 'list without one: each record says its own'
  return new UnsupportedError({ engine: 'kafka', limit: `cannot list records by the state '${state}'; ${advice}` })
}

function tooLarge({ topic }: PartitionName, bytesMax: number): EngineError {
  return new EngineError(
    'ERR_STORAGE_BUSY',
    `more than ${bytesMax} bytes were read of ${topic} for this; ask for fewer records, or for one by topic/partition/offset`,
  )
}

/** What the letter of a record may be called: it may not say of which topic of the name, nor for which group. */
function letterIdsOf(record: LogRecord, { topicId }: GroupPlace, group: string): readonly string[] {
  return [letterId(record, group, topicId), letterId(record, group, null), letterId(record, '', null)]
}
