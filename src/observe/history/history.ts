/** The history that the keeper makes, for charts: the same in every process, and after restarts. */
import {
  addCell,
  addDepths,
  type Block,
  type Cell,
  type Depth,
  decodeBlock,
  emptyCell,
  highestDepth,
  NO_DEPTH,
  OTHERS,
} from '../../engine/history/block.ts'
import { percentileOf } from '../../engine/history/buckets.ts'
import { blockStartMs, HELD_MS, RESOLUTIONS } from '../../engine/history/resolutions.ts'
import { readTallies, type Tally } from '../../engine/history/tally.ts'
import type { Records } from '../../engine/records.ts'
import type { HistoryPoint } from '../sampling/sampler.ts'
import { RANGES, type RangeName } from './ranges.ts'

export interface PastOptions {
  readonly range: RangeName
  /** Default: all types. */
  readonly type?: string
  readonly nowMs: number
}

export interface Past {
  readonly fromMs: number
  readonly stepMs: number
  /** One for each step, with the time of its beginning. What is not known is null. */
  readonly points: readonly HistoryPoint[]
  /** Types that are kept apart, by name. */
  readonly types: readonly string[]
  /** Whether there were more types than are kept apart. Their sum is in the whole, and in no type. */
  readonly hasOthers: boolean
}

/** A worker tells of its attempts this often, and the store needs a moment: until then a second is not known. */
const SAID_MS = 12_000

/** Reads one resolution, and what workers have said since the keeper wrote it last. */
export async function readPast(records: Pick<Records, 'list'>, options: PastOptions): Promise<Past> {
  const { range, type, nowMs } = options
  const { ms, stepMs, kind } = RANGES[range]
  const endMs = Math.ceil(nowMs / stepMs) * stepMs
  const fromMs = endMs - ms
  // First: a tally that the keeper takes meanwhile is in its block then.
  const tallies = readTallies(await records.list('tally'))
  const blocks = (await records.list(kind)).flatMap(({ body }) => decodeBlock(body) ?? [])
  const steps = new Steps(RESOLUTIONS[kind].stepMs, type)
  const first = fromMs - HELD_MS
  const wanted = blocks.filter((block) => block.fromMs + RESOLUTIONS[kind].steps * block.stepMs > first)
  for (const block of wanted) steps.addBlock(block)
  for (const tally of tallies)
    steps.addTally(tally, (atMs) => isIn(wanted, tally, blockStartMs(RESOLUTIONS[kind], atMs)))
  steps.hold(first, endMs)
  const points = Array.from({ length: ms / stepMs }, (_, index) => {
    const atMs = fromMs + index * stepMs
    const merged = steps.merge(atMs, Math.min(atMs + stepMs, nowMs))
    const saidFromMs = kind === 'second' ? atMs + stepMs : atMs
    return pointOf(atMs, merged, {
      seconds: Math.max(1, Math.min(stepMs, nowMs - atMs) / 1_000),
      isSaid: saidFromMs <= nowMs - SAID_MS,
      isEnqueuedKnown: kind !== 'second',
    })
  })
  return { fromMs, stepMs, points, types: [...steps.types].sort(), hasOthers: steps.hasOthers }
}

function isIn(blocks: readonly Block[], { writer, seq }: Tally, fromMs: number): boolean {
  return blocks.some((block) => block.fromMs === fromMs && (block.seen.get(writer) ?? -1) >= seq)
}

interface Merged {
  /** Null when nothing ended. */
  readonly cell: Cell | null
  readonly depth: Depth | null
}

/** The steps of a resolution, of all types or of one. */
class Steps {
  readonly types = new Set<string>()
  hasOthers = false
  readonly #stepMs: number
  readonly #type: string | undefined
  readonly #cells = new Map<number, Cell>()
  readonly #depths = new Map<number, Depth>()
  /** Steps of blocks that do not keep the type apart. */
  readonly #unknown = new Set<number>()

  constructor(stepMs: number, type: string | undefined) {
    this.#stepMs = stepMs
    this.#type = type
  }

  addBlock(block: Block): void {
    const types = block.types()
    const isFolded = types.includes(OTHERS)
    const at = (step: number): number => block.fromMs / this.#stepMs + step
    for (const type of types) if (type !== OTHERS) this.types.add(type)
    if (isFolded) this.hasOthers = true
    if (this.#type !== undefined && isFolded && !types.includes(this.#type)) {
      for (const step of [...block.cells.keys(), ...block.sampled]) this.#unknown.add(at(step))
      return
    }
    for (const [step, cells] of block.cells) this.#add(at(step), cells)
    for (const step of block.sampled) {
      const depths = [...(block.cells.get(step) ?? [])].filter(([type]) => this.#isWanted(type))
      const depth = depths.reduce((sum, [, cell]) => addDepths(sum, cell.depth), NO_DEPTH)
      this.#depths.set(at(step), addDepths(this.#depths.get(at(step)) ?? NO_DEPTH, depth))
    }
  }

  addTally({ block }: Tally, isIn: (atMs: number) => boolean): void {
    for (const [step, cells] of block.cells) {
      const atMs = block.fromMs + step * block.stepMs
      if (isIn(atMs)) continue
      for (const type of cells.keys()) if (type !== OTHERS) this.types.add(type)
      this.#add(Math.floor(atMs / this.#stepMs), cells)
    }
  }

  /** What was counted last holds until it is counted again, but not for longer than a keeper may be silent. */
  hold(fromMs: number, endMs: number): void {
    let [depth, counted]: [Depth | null, number] = [null, 0]
    for (let at = Math.floor(fromMs / this.#stepMs); at * this.#stepMs < endMs; at += 1) {
      const now = this.#depths.get(at)
      if (now !== undefined) [depth, counted] = [now, at]
      else if (depth !== null && (at - counted) * this.#stepMs < HELD_MS) this.#depths.set(at, depth)
    }
  }

  /** Null when nothing is known of the time. */
  merge(fromMs: number, endMs: number): Merged | null {
    let cell: Cell | null = null
    let depth: Depth | null = null
    let isKnown = false
    for (let at = fromMs / this.#stepMs; at * this.#stepMs < endMs; at += 1) {
      const [more, now] = [this.#cells.get(at), this.#depths.get(at)]
      if (more !== undefined) {
        cell ??= emptyCell()
        addCell(cell, more)
      }
      if (now !== undefined) depth = highestDepth(depth ?? NO_DEPTH, now)
      if ((more !== undefined || now !== undefined) && !this.#unknown.has(at)) isKnown = true
    }
    return isKnown ? { cell, depth } : null
  }

  #add(at: number, cells: ReadonlyMap<string, Cell>): void {
    for (const [type, cell] of cells) {
      if (!this.#isWanted(type) || !hasEnds(cell)) continue
      const sum = this.#cells.get(at) ?? emptyCell()
      this.#cells.set(at, sum)
      addCell(sum, cell)
    }
  }

  #isWanted(type: string): boolean {
    return this.#type === undefined || this.#type === type
  }
}

/** Others only have a depth. */
function hasEnds({ completed, failed, enqueued }: Cell): boolean {
  return completed + failed + enqueued > 0
}

const UNKNOWN_DEPTH = { ready: null, delayed: null, inProgress: null, dead: null } as const

function pointOf(
  atMs: number,
  merged: Merged | null,
  { seconds, isSaid, isEnqueuedKnown }: { seconds: number; isSaid: boolean; isEnqueuedKnown: boolean },
): HistoryPoint {
  const cell = merged?.cell ?? (merged !== null && isSaid ? emptyCell() : null)
  const perSecond = (count: number | undefined): number | null => (count === undefined ? null : count / seconds)
  const share = (of: 'run' | 'wait', at: number): number | null => (cell === null ? null : percentileOf(cell[of], at))
  return {
    atMs,
    completedPerSecond: perSecond(cell?.completed),
    failedPerSecond: perSecond(cell?.failed),
    enqueuedPerSecond: isEnqueuedKnown ? perSecond(cell?.enqueued) : null,
    waitP50Ms: share('wait', 0.5),
    waitP95Ms: share('wait', 0.95),
    waitP99Ms: share('wait', 0.99),
    durationP50Ms: share('run', 0.5),
    durationP95Ms: share('run', 0.95),
    durationP99Ms: share('run', 0.99),
    ...(merged?.depth ?? UNKNOWN_DEPTH),
  }
}
