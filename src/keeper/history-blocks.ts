import { randomUUID } from 'node:crypto'
import type { Counts } from '../engine/engine.ts'
import { addDepths, Block, decodeBlock, encodeBlock, highestDepth, NO_DEPTH, OTHERS } from '../engine/history/block.ts'
import {
  blockStartMs,
  RESOLUTIONS,
  type Resolution,
  type ResolutionKind,
  recordName,
} from '../engine/history/resolutions.ts'
import { addTally, blocksOf, type Tally } from '../engine/history/tally.ts'
import type { Records } from '../engine/records.ts'

/** The jobs in the store at one moment. */
export interface Sample {
  readonly counts: Counts
  readonly atMs: number
  /** By type, since the sample before. */
  readonly enqueued: ReadonlyMap<string, number>
}

/** A record as it was read or written last. */
interface Known {
  readonly revision: string
  readonly fromMs: number
  /** Null for an older one, which is read again if it is needed. */
  readonly block: Block | null
}

type KnownRecords = ReadonlyMap<ResolutionKind, Map<string, Known>>

/** The minutes tell whether another keeper has counted the store, so they are written first. */
const KINDS: readonly ResolutionKind[] = ['minute', 'second', 'hour']

/** Another keeper has changed a block since it was read. */
export class ChangedError extends Error {}

/**
 * The blocks of the store. Each remembers which tallies it has, and is replaced only if it is as it was read, so that a
 * tally counts once, even if two keepers write. `read` comes before tallies are listed: those that are removed meanwhile are in blocks
 * that have changed since.
 */
export class HistoryBlocks {
  readonly #records: Records
  #known: KnownRecords | null = null

  constructor(records: Records) {
    this.#records = records
  }

  /** Reads the store if somebody else may have written, and costs nothing otherwise. */
  async read(nowMs: number): Promise<void> {
    if (this.#known !== null) return
    const known = new Map<ResolutionKind, Map<string, Known>>()
    for (const kind of KINDS) {
      const ofKind = new Map<string, Known>()
      for (const { name, revision, body } of await this.#records.list(kind)) {
        const block = decodeBlock(body)
        const fromMs = block?.fromMs ?? 0
        ofKind.set(name, { revision, fromMs, block: isRecent(RESOLUTIONS[kind], fromMs, nowMs) ? block : null })
      }
      known.set(kind, ofKind)
    }
    this.#known = known
  }

  /** Adds the tallies, and the sample if there is one. Throws a `ChangedError` when all must be read again. */
  async write(tallies: readonly Tally[], sample: Sample | null, nowMs: number): Promise<void> {
    const known = this.#known
    if (known === null) throw new ChangedError()
    // What has failed half-way may have been stored.
    this.#known = null
    const counted = sample !== null && isCounted(known, sample) ? null : sample
    for (const kind of KINDS) {
      const resolution = RESOLUTIONS[kind]
      const starts = new Set(tallies.flatMap((tally) => [...blocksOf(resolution, tally)]))
      if (counted !== null) starts.add(blockStartMs(resolution, counted.atMs))
      const ofKind = known.get(kind) ?? new Map<string, Known>()
      for (const fromMs of starts) {
        const isNow = counted !== null && blockStartMs(resolution, counted.atMs) === fromMs
        await this.#writeBlock(ofKind, resolution, { fromMs, tallies, sample: isNow ? counted : null })
      }
      for (const [name, one] of ofKind) {
        if (one.block !== null && !isRecent(resolution, one.fromMs, nowMs)) ofKind.set(name, { ...one, block: null })
      }
    }
    this.#known = known
  }

  async #writeBlock(
    known: Map<string, Known>,
    resolution: Resolution,
    { fromMs, tallies, sample }: { fromMs: number; tallies: readonly Tally[]; sample: Sample | null },
  ): Promise<void> {
    const { kind, stepMs, steps, records, bytesMax } = resolution
    const name = recordName(resolution, fromMs)
    const before = known.get(name)
    // Older than all that is kept.
    if (before !== undefined && before.fromMs > fromMs) return
    const block = before?.fromMs === fromMs ? await this.#blockOf(kind, name, before) : new Block(fromMs, stepMs)
    const added = tallies.filter((tally) => addTally(block, tally, steps))
    if (added.length === 0 && sample === null) return
    block.seen = new Map(tallies.map(({ writer, seq }) => [writer, seq]))
    if (sample !== null) addSample(block, sample, kind)
    const body = encodeBlock(block, { bytesMax })
    const revision = randomUUID()
    const ttlMs = records * steps * stepMs
    const saved = await this.#records.save(kind, { name, revision, body }, before?.revision ?? null, { ttlMs })
    if (saved === null) throw new ChangedError()
    known.set(name, { revision, fromMs, block: decodeBlock(body) })
  }

  async #blockOf(kind: ResolutionKind, name: string, { block, revision }: Known): Promise<Block> {
    if (block !== null) return block
    const stored = (await this.#records.list(kind)).find((record) => record.name === name)
    const found = stored?.revision === revision ? decodeBlock(stored.body) : null
    if (found === null) throw new ChangedError()
    return found
  }
}

function isRecent({ stepMs, steps }: Resolution, fromMs: number, nowMs: number): boolean {
  return nowMs - fromMs < 2 * steps * stepMs
}

/** Whether the store was counted in this minute: keepers with other duties have a leader of their own. */
function isCounted(known: KnownRecords, { atMs }: Sample): boolean {
  const fromMs = blockStartMs(RESOLUTIONS.minute, atMs)
  const one = known.get('minute')?.get(recordName(RESOLUTIONS.minute, fromMs))
  return one?.fromMs === fromMs && one.block?.sampled.has(one.block.stepAt(atMs)) === true
}

/** Types that the block does not keep apart are counted together. */
function addSample(block: Block, { counts, atMs, enqueued }: Sample, kind: ResolutionKind): void {
  const step = block.stepAt(atMs)
  const types = new Set(block.types())
  const isFolded = types.has(OTHERS)
  let others = NO_DEPTH
  for (const [type, { ready, delayed, inProgress, dead }] of Object.entries(counts)) {
    const depth = { ready, delayed, inProgress, dead }
    if (ready + delayed + inProgress + dead === 0) continue
    if (isFolded && !types.has(type)) others = addDepths(others, depth)
    else {
      const cell = block.cell(step, type)
      cell.depth = highestDepth(cell.depth, depth)
    }
  }
  if (isFolded) {
    const cell = block.cell(step, OTHERS)
    cell.depth = highestDepth(cell.depth, others)
  }
  block.sampled.add(step)
  // Those of a minute in one of its seconds would look like a burst.
  if (kind === 'second') return
  for (const [type, count] of enqueued) block.cell(step, isFolded && !types.has(type) ? OTHERS : type).enqueued += count
}
