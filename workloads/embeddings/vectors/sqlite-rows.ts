/** Reads the rows of one generation in steps of a few milliseconds, because each read blocks the event loop. */
import { bytesOf, numberOf } from '../../database/columns.ts'
import type { Row, Value, WorkloadDatabase } from '../../database/database.ts'
import { normalised } from './entries.ts'
import { othersTurn } from './matrix.ts'
import type { Query } from './tables.ts'

/** Rows of one read, each about 2 kB with 384 dimensions, and of one read of numbers alone. */
const ROWS_PER_READ = 1_000
const NUMBERS_PER_READ = 8_192

export interface Direction {
  readonly number: number
  /** Of length 1. */
  readonly vector: Float32Array
}

export class SqliteRows {
  readonly #database: WorkloadDatabase
  readonly #table: string

  constructor(database: WorkloadDatabase, table: string) {
    this.#database = database
    this.#table = table
  }

  async count(): Promise<number> {
    return numberOf((await this.#database.read(`SELECT count(*) AS count FROM ${this.#table}`))[0] ?? {}, 'count')
  }

  /** The numbers of all rows. */
  numbers(): Promise<readonly number[]> {
    return this.#numbers('', [])
  }

  /** The numbers of the rows that match a filter. Values are compared as JSON, so 1, true and '1' differ. */
  matching(filter: Query['filter']): Promise<readonly number[]> {
    return this.#numbers(conditionsOf(filter), valuesOf(filter))
  }

  /** The rows with these numbers that still match the filter, as they are stored now. */
  found(numbers: readonly number[], filter: Query['filter']): Promise<readonly Row[]> {
    const values = valuesOf(filter)
    return this.#database.read(
      `SELECT id, metadata, embedding FROM ${this.#table}
       WHERE number IN (SELECT value FROM json_each($${values.length + 1}))${conditionsOf(filter)} ORDER BY number`,
      [...values, JSON.stringify(numbers)],
    )
  }

  async #numbers(condition: string, values: readonly Value[]): Promise<readonly number[]> {
    const numbers: number[] = []
    const [row] = await this.#database.read(`SELECT coalesce(max(number), 0) AS last FROM ${this.#table}`)
    const end = numberOf(row ?? {}, 'last')
    const [from, to] = [`$${values.length + 1}`, `$${values.length + 2}`]
    for (let start = 0; start < end; start += NUMBERS_PER_READ) {
      const page = await this.#database.read(
        `SELECT number FROM ${this.#table} WHERE number > ${from} AND number <= ${to}${condition}`,
        [...values, start, start + NUMBERS_PER_READ],
      )
      for (const found of page) numbers.push(numberOf(found, 'number'))
      await othersTurn()
    }
    return numbers
  }

  async *all(): AsyncGenerator<readonly Direction[]> {
    for (let last = 0; ; ) {
      const page = await this.#database.read(
        `SELECT number, embedding FROM ${this.#table} WHERE number > $1 ORDER BY number LIMIT ${ROWS_PER_READ}`,
        [last],
      )
      const end = page.at(-1)
      if (end === undefined) return
      yield directionsOf(page)
      last = numberOf(end, 'number')
      await othersTurn()
    }
  }

  async *some(numbers: readonly number[]): AsyncGenerator<readonly Direction[]> {
    for (let start = 0; start < numbers.length; start += ROWS_PER_READ) {
      const page = await this.#database.read(
        `SELECT number, embedding FROM ${this.#table} WHERE number IN (SELECT value FROM json_each($1))`,
        [JSON.stringify(numbers.slice(start, start + ROWS_PER_READ))],
      )
      yield directionsOf(page)
      await othersTurn()
    }
  }

  /** Those that were written after this change. */
  async *changedSince(known: number): AsyncGenerator<readonly Direction[]> {
    for (let [change, number] = [known + 1, 0]; ; ) {
      const page = await this.#database.read(
        `SELECT number, change, embedding FROM ${this.#table} WHERE (change, number) > ($1, $2)
         ORDER BY change, number LIMIT ${ROWS_PER_READ}`,
        [change, number],
      )
      const end = page.at(-1)
      if (end === undefined) return
      yield directionsOf(page)
      change = numberOf(end, 'change')
      number = numberOf(end, 'number')
      await othersTurn()
    }
  }
}

function conditionsOf(filter: Query['filter']): string {
  return filter.map((_, index) => ` AND metadata -> $${index * 2 + 1} = $${index * 2 + 2}`).join('')
}

function valuesOf(filter: Query['filter']): readonly Value[] {
  return filter.flatMap(([name, value]) => [`$."${name}"`, JSON.stringify(value)])
}

function directionsOf(rows: readonly Row[]): readonly Direction[] {
  return rows.map((row) => ({
    number: numberOf(row, 'number'),
    vector: normalised(toVector(bytesOf(row, 'embedding'))),
  }))
}

export function toBytes(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)
}

/** A copy where the driver's bytes do not begin at a multiple of four. */
export function toVector(bytes: Uint8Array): Float32Array {
  const { buffer, byteOffset, byteLength } = isAligned(bytes) ? bytes : bytes.slice()
  return new Float32Array(buffer, byteOffset, byteLength / Float32Array.BYTES_PER_ELEMENT)
}

function isAligned({ byteOffset }: Uint8Array): boolean {
  return byteOffset % Float32Array.BYTES_PER_ELEMENT === 0
}
