/** The generations that were searched last, in memory. Each follows what this process and others write. */
import { numberOf } from '../../database/columns.ts'
import type { WorkloadDatabase } from '../../database/database.ts'
import { Matrix, matrixBytes } from './matrix.ts'
import { type Direction, SqliteRows } from './sqlite-rows.ts'
import { type Generation, tableOf } from './tables.ts'

interface Cached {
  readonly matrix: Matrix
  /** What the matrix has followed so far. */
  changes: number
  removals: number
  /** The search under way: the next one waits, because it may change the matrix. */
  turn: Promise<unknown>
}

export class MatrixCache {
  readonly #database: WorkloadDatabase
  readonly #bytesMax: number
  /** The one that was used last is at the end. */
  readonly #cached = new Map<number, Cached>()

  constructor(database: WorkloadDatabase, bytesMax: number) {
    this.#database = database
    this.#bytesMax = bytesMax
  }

  fits(dimensions: number, count: number): boolean {
    return matrixBytes(dimensions, count) <= this.#bytesMax
  }

  forget(generation: number): void {
    this.#cached.delete(generation)
  }

  clear(): void {
    this.#cached.clear()
  }

  /** One search of a generation at a time: they share one thread anyway, and the matrix must not change below one. */
  async use({ generation, dimensions }: Generation, search: (matrix: Matrix) => Promise<void>): Promise<void> {
    const fresh = { matrix: new Matrix(dimensions), changes: 0, removals: 0, turn: Promise.resolve() }
    const cached: Cached = this.#cached.get(generation) ?? fresh
    this.#cached.delete(generation)
    this.#cached.set(generation, cached)
    const turn = cached.turn.then(async () => {
      await this.#follow(generation, cached)
      this.#makeRoom(generation)
      await search(cached.matrix)
    })
    cached.turn = turn.catch(() => undefined)
    return turn
  }

  async #follow(generation: number, cached: Cached): Promise<void> {
    const rows = new SqliteRows(this.#database, tableOf(generation))
    const [row] = await this.#database.read(
      'SELECT changes, removals FROM {embedding_generations} WHERE generation = $1',
      [generation],
    )
    if (row === undefined) return
    // Counted before the rows are read: what is written meanwhile is read again by the next search.
    const [changes, removals] = [numberOf(row, 'changes'), numberOf(row, 'removals')]
    if (cached.changes === 0) await fill(cached.matrix, rows.all())
    else if (changes !== cached.changes) await fill(cached.matrix, rows.changedSince(cached.changes))
    if (removals !== cached.removals) cached.matrix.retain(new Set(await rows.numbers()))
    cached.changes = changes
    cached.removals = removals
  }

  /** Forgets what was searched longest ago. */
  #makeRoom(kept: number): void {
    const bytes = (): number => [...this.#cached.values()].reduce((sum, { matrix }) => sum + matrix.bytes, 0)
    for (const key of [...this.#cached.keys()]) {
      if (bytes() <= this.#bytesMax) return
      if (key !== kept) this.#cached.delete(key)
    }
  }
}

async function fill(matrix: Matrix, pages: AsyncGenerator<readonly Direction[]>): Promise<void> {
  for await (const page of pages) for (const { number, vector } of page) matrix.set(number, vector)
}
