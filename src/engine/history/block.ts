/** What happened in some steps of time, by type: how it is added up, and how it is stored. */
import { bodyFields } from '../records.ts'
import { addBuckets, type Buckets, coarsened } from './buckets.ts'

/** Jobs of a type that wait, run or are dead at one moment. */
export interface Depth {
  readonly ready: number
  readonly delayed: number
  readonly inProgress: number
  readonly dead: number
}

/** One type in one step. */
export interface Cell {
  completed: number
  /** Attempts, whether tried again or not. */
  failed: number
  /** Jobs that became dead letters. */
  died: number
  enqueued: number
  /** How long attempts ran. */
  readonly run: Buckets
  /** How long jobs waited for their first attempt. */
  readonly wait: Buckets
  /** The highest of the step. */
  depth: Depth
}

export const NO_DEPTH: Depth = Object.freeze({ ready: 0, delayed: 0, inProgress: 0, dead: 0 })

/** All types that are not kept apart. It is no valid type. */
export const OTHERS = '*'
/** Types kept apart in a block. */
export const TYPES_MAX = 20

export function emptyCell(): Cell {
  return { completed: 0, failed: 0, died: 0, enqueued: 0, run: new Map(), wait: new Map(), depth: NO_DEPTH }
}

export function addCell(sum: Cell, more: Cell): void {
  sum.completed += more.completed
  sum.failed += more.failed
  sum.died += more.died
  sum.enqueued += more.enqueued
  addBuckets(sum.run, more.run)
  addBuckets(sum.wait, more.wait)
  sum.depth = highestDepth(sum.depth, more.depth)
}

export function highestDepth(one: Depth, other: Depth): Depth {
  return {
    ready: Math.max(one.ready, other.ready),
    delayed: Math.max(one.delayed, other.delayed),
    inProgress: Math.max(one.inProgress, other.inProgress),
    dead: Math.max(one.dead, other.dead),
  }
}

export function addDepths(one: Depth, other: Depth): Depth {
  return {
    ready: one.ready + other.ready,
    delayed: one.delayed + other.delayed,
    inProgress: one.inProgress + other.inProgress,
    dead: one.dead + other.dead,
  }
}

export class Block {
  readonly fromMs: number
  readonly stepMs: number
  /** By step, counted from `fromMs`, and type. */
  readonly cells: Map<number, Map<string, Cell>> = new Map()
  /** Steps in which the store was counted: a type without a depth there had no jobs. */
  readonly sampled: Set<number> = new Set()
  /** The last tally of each writer that is in it. */
  seen: ReadonlyMap<string, number> = new Map()

  constructor(fromMs: number, stepMs: number) {
    this.fromMs = fromMs
    this.stepMs = stepMs
  }

  stepAt(atMs: number): number {
    return Math.floor((atMs - this.fromMs) / this.stepMs)
  }

  cell(step: number, type: string): Cell {
    const types = this.cells.get(step) ?? new Map<string, Cell>()
    this.cells.set(step, types)
    const cell = types.get(type) ?? emptyCell()
    types.set(type, cell)
    return cell
  }

  /** The busiest first; of those that are equally busy the ones with more jobs. */
  types(): readonly string[] {
    const sums = new Map<string, { attempts: number; jobs: number }>()
    for (const types of this.cells.values()) {
      for (const [type, { completed, failed, depth }] of types) {
        const sum = sums.get(type) ?? { attempts: 0, jobs: 0 }
        sum.attempts += completed + failed
        sum.jobs += depth.ready + depth.delayed + depth.inProgress + depth.dead
        sums.set(type, sum)
      }
    }
    const order = ([a, one]: [string, Sum], [b, other]: [string, Sum]): number =>
      other.attempts - one.attempts || other.jobs - one.jobs || (a < b ? -1 : 1)
    return [...sums].toSorted(order).map(([type]) => type)
  }
}

interface Sum {
  readonly attempts: number
  readonly jobs: number
}

export interface BlockLimits {
  readonly bytesMax: number
  /** Default: `TYPES_MAX`. */
  readonly typesMax?: number
}

/** Whole powers of two, and two buckets in all. */
const [WIDE_LEVEL, WIDEST_LEVEL] = [3, 9]

/**
 * Text of at most `bytesMax`: with more types than are kept apart the least busy ones become `OTHERS`. If it does not fit,
 * durations are counted in wider buckets, up to a power of two, and then fewer types are kept apart. Counts stay exact.
 */
export function encodeBlock(block: Block, { bytesMax, typesMax = TYPES_MAX }: BlockLimits): string {
  const own = block.types().filter((type) => type !== OTHERS)
  for (let size = Math.min(own.length, typesMax); size > 0; size >>= 1) {
    const text = encodeWith(block, own.slice(0, size), { bytesMax, levelMax: WIDE_LEVEL })
    if (text !== null) return text
  }
  return encodeWith(block, [], { bytesMax, levelMax: WIDEST_LEVEL }) ?? ''
}

/** Null if it does not fit. */
function encodeWith(
  block: Block,
  kept: readonly string[],
  { bytesMax, levelMax }: { readonly bytesMax: number; readonly levelMax: number },
): string | null {
  const names = new Set(kept)
  const isFolded = [...block.cells.values()].some((cells) => [...cells.keys()].some((type) => !names.has(type)))
  const folded = isFolded ? foldTypes(block, names) : block
  const types = isFolded ? [...kept, OTHERS] : kept
  const { fromMs: from, stepMs: step } = block
  const facts = { from, step, types, sampled: [...block.sampled], seen: Object.fromEntries(block.seen) }
  for (let level = 0; level <= levelMax; level += 1) {
    const text = JSON.stringify({ ...facts, cells: cellsOf(folded, types, level) })
    if (Buffer.byteLength(text) <= bytesMax) return text
  }
  return null
}

function foldTypes(block: Block, kept: ReadonlySet<string>): Block {
  const folded = new Block(block.fromMs, block.stepMs)
  for (const [step, types] of block.cells) {
    let others = NO_DEPTH
    for (const [type, cell] of types) {
      const sum = folded.cell(step, kept.has(type) ? type : OTHERS)
      addCell(sum, cell)
      if (kept.has(type)) continue
      // Several types at one moment: their jobs are added up.
      others = addDepths(others, cell.depth)
      sum.depth = others
    }
  }
  return folded
}

type CellRow = readonly (number | readonly number[])[]

function cellsOf(block: Block, types: readonly string[], level: number): readonly CellRow[] {
  const places = new Map(types.map((type, index) => [type, index]))
  const rows: CellRow[] = []
  for (const [step, cells] of block.cells) {
    for (const [type, { completed, failed, died, enqueued, run, wait, depth }] of cells) {
      const { ready, delayed, inProgress, dead } = depth
      const jobs = ready + delayed + inProgress + dead === 0 ? [] : [ready, delayed, inProgress, dead]
      const times = [run, wait].map((buckets) => [...coarsened(buckets, level)].flat())
      rows.push([step, places.get(type) ?? 0, completed, failed, died, enqueued, jobs, ...times])
    }
  }
  return rows
}

/** Null for text that is no block. */
export function decodeBlock(text: string): Block | null {
  const { from, step, types, sampled, seen, cells } = bodyFields(text)
  if (typeof from !== 'number' || typeof step !== 'number' || !Array.isArray(types) || !Array.isArray(cells))
    return null
  const block = new Block(from, step)
  for (const at of Array.isArray(sampled) ? sampled : []) block.sampled.add(Number(at))
  if (typeof seen === 'object' && seen !== null) {
    block.seen = new Map(Object.entries(seen).map(([writer, seq]) => [writer, Number(seq)]))
  }
  for (const row of cells) if (Array.isArray(row)) readCell(block, types.map(String), row)
  return block
}

function readCell(block: Block, types: readonly string[], row: readonly unknown[]): void {
  const [step, place, completed, failed, died, enqueued, jobs, run, wait] = row
  const type = types[Number(place)]
  if (type === undefined) return
  const [ready = 0, delayed = 0, inProgress = 0, dead = 0] = numbersOf(jobs)
  addCell(block.cell(Number(step), type), {
    completed: Number(completed),
    failed: Number(failed),
    died: Number(died),
    enqueued: Number(enqueued),
    run: new Map(pairsOf(numbersOf(run))),
    wait: new Map(pairsOf(numbersOf(wait))),
    depth: { ready, delayed, inProgress, dead },
  })
}

function numbersOf(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : []
}

function pairsOf(numbers: readonly number[]): readonly (readonly [number, number])[] {
  return Array.from({ length: numbers.length >> 1 }, (_, at) => [numbers[2 * at] ?? 0, numbers[2 * at + 1] ?? 0])
}
