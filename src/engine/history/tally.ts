/** What a worker says of its attempts: from one heartbeat to the next, by second and type. */
import { randomBytes } from 'node:crypto'
import { bodyFields, type Records, type StoredRecord } from '../records.ts'
import { addCell, Block, type Cell, decodeBlock, emptyCell, encodeBlock } from './block.ts'
import { BUCKETS, bucketOf } from './buckets.ts'
import { blockStartMs, type Resolution } from './resolutions.ts'

const SECOND_MS = 1_000

/** Attempts of a type that ended in one second of the monotonic clock. */
interface EndedSecond {
  readonly second: number
  completed: number
  failed: number
  died: number
  readonly run: Uint32Array
  readonly wait: Uint32Array
}

/** Counts the attempts of one type. It is told of every attempt, so it reads no clock and looks nothing up. */
export class TypeTally {
  /** From the monotonic to the wall clock. */
  #offsetMs: number
  #seconds: EndedSecond[] = []
  #now: EndedSecond | null = null

  constructor(offsetMs: number) {
    this.#offsetMs = offsetMs
  }

  /** `startedAtMs` and `endedAtMs` are monotonic. `dueAtMs` is null but for the first attempt, of which the wait counts. */
  add(kind: 'complete' | 'retry' | 'dead', startedAtMs: number, endedAtMs: number, dueAtMs: number | null): void {
    const ended = this.#at(endedAtMs)
    if (kind === 'complete') ended.completed += 1
    else ended.failed += 1
    if (kind === 'dead') ended.died += 1
    count(ended.run, endedAtMs - startedAtMs)
    if (dueAtMs !== null) count(ended.wait, startedAtMs + this.#offsetMs - dueAtMs)
  }

  /** An attempt whose worker died: nobody knows how long it ran. */
  addReaped(kind: 'retry' | 'dead', atMs: number): void {
    const ended = this.#at(atMs)
    ended.failed += 1
    if (kind === 'dead') ended.died += 1
  }

  /** What was counted since the last call. `offsetMs`: now. */
  take(offsetMs: number): readonly { readonly atMs: number; readonly cell: Cell }[] {
    const seconds = this.#seconds
    this.#seconds = []
    this.#now = null
    this.#offsetMs = offsetMs
    return seconds.map(({ second, completed, failed, died, run, wait }) => ({
      atMs: second * SECOND_MS + offsetMs,
      cell: { ...emptyCell(), completed, failed, died, run: countedIn(run), wait: countedIn(wait) },
    }))
  }

  #at(atMs: number): EndedSecond {
    const second = Math.floor(atMs / SECOND_MS)
    return this.#now?.second === second ? this.#now : this.#begin(second)
  }

  #begin(second: number): EndedSecond {
    const counts = { completed: 0, failed: 0, died: 0, run: new Uint32Array(BUCKETS), wait: new Uint32Array(BUCKETS) }
    const ended = { second, ...counts }
    this.#now = ended
    this.#seconds.push(ended)
    return ended
  }
}

function count(times: Uint32Array, ms: number): void {
  const bucket = bucketOf(ms)
  times[bucket] = (times[bucket] ?? 0) + 1
}

function countedIn(times: Uint32Array): Map<number, number> {
  const found = new Map<number, number>()
  for (const [bucket, count] of times.entries()) if (count > 0) found.set(bucket, count)
  return found
}

export interface Tally {
  readonly name: string
  readonly writer: string
  readonly seq: number
  readonly block: Block
}

/** Names come again after this many, so that a store without a keeper does not fill up: ten minutes of heartbeats. */
const TALLIES_KEPT = 60
const TALLY_TTL_MS = 86_400_000
const TALLY_BYTES_MAX = 64 * 1_024
/** A worker seldom has more; the keeper chooses again among those of all workers. */
const TALLY_TYPES_MAX = 100

/** Stores tallies under a name of its own, each once. */
export class TallyWriter {
  readonly #records: Pick<Records, 'put'>
  /** Not the worker's id, which a later worker may have again. */
  readonly #writer = randomBytes(6).toString('base64url')
  #seq = 0

  constructor(records: Pick<Records, 'put'>) {
    this.#records = records
  }

  /** Writes nothing if nothing ended. What cannot be stored is lost: said again, it might count twice. */
  async write(types: Iterable<readonly [string, TypeTally]>, offsetMs: number): Promise<void> {
    const taken = [...types].flatMap(([type, tally]) => tally.take(offsetMs).map((ended) => ({ type, ...ended })))
    if (taken.length === 0) return
    const firstMs = Math.min(...taken.map(({ atMs }) => atMs))
    const block = new Block(Math.floor(firstMs / SECOND_MS) * SECOND_MS, SECOND_MS)
    for (const { type, atMs, cell } of taken) addCell(block.cell(block.stepAt(atMs), type), cell)
    const seq = this.#seq
    this.#seq += 1
    const encoded = encodeBlock(block, { bytesMax: TALLY_BYTES_MAX, typesMax: TALLY_TYPES_MAX })
    const body = `{"writer":"${this.#writer}","seq":${seq},${encoded.slice(1)}`
    await this.#records.put('tally', [{ name: `${this.#writer}\n${seq % TALLIES_KEPT}`, body }], TALLY_TTL_MS)
  }
}

/** In the order in which each writer wrote them. Text that is no tally is left out. */
export function readTallies(records: readonly StoredRecord[]): readonly Tally[] {
  const tallies = records.flatMap(({ name, body }) => {
    const { writer, seq } = bodyFields(body)
    const block = decodeBlock(body)
    return block === null || typeof writer !== 'string' || typeof seq !== 'number' ? [] : [{ name, writer, seq, block }]
  })
  return tallies.sort((one, other) => one.seq - other.seq)
}

/** The starts of the blocks that a tally concerns. */
export function blocksOf(resolution: Resolution, { block }: Tally): ReadonlySet<number> {
  return new Set([...block.cells.keys()].map((step) => blockStartMs(resolution, block.fromMs + step * block.stepMs)))
}

/** Adds what falls into the block, unless it is in it already. Whether anything was added. */
export function addTally(into: Block, { writer, seq, block }: Tally, steps: number): boolean {
  if ((into.seen.get(writer) ?? -1) >= seq) return false
  let isAdded = false
  for (const [step, types] of block.cells) {
    const at = into.stepAt(block.fromMs + step * block.stepMs)
    if (at < 0 || at >= steps) continue
    isAdded = true
    for (const [type, cell] of types) addCell(into.cell(at, type), cell)
  }
  return isAdded
}
