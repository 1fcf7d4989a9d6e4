/** Values of rows as both drivers return them: node:sqlite has no booleans, times and JSON, and pg returns 64-bit integers as text. */
import { EngineError } from '../../src/errors.ts'
import type { Row } from './database.ts'

function wrong(column: string, value: unknown): EngineError {
  return new EngineError(
    'ERR_STORAGE_FAILED',
    `the column '${column}' holds a ${typeof value} that Millrace did not write; restore the row or remove it`,
  )
}

export function textOf(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw wrong(column, value)
  return value
}

export function numberOf(row: Row, column: string): number {
  const value = Number(row[column] ?? Number.NaN)
  if (Number.isNaN(value)) throw wrong(column, row[column])
  return value
}

export function booleanOf(row: Row, column: string): boolean {
  const value = row[column]
  return value === true || value === 1 || value === 1n
}

export function dateOf(row: Row, column: string): Date {
  const value = row[column]
  const date = value instanceof Date ? value : new Date(typeof value === 'string' ? value : Number.NaN)
  if (Number.isNaN(date.getTime())) throw wrong(column, value)
  return date
}

export function jsonOf(row: Row, column: string): unknown {
  const value = row[column]
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    throw wrong(column, value)
  }
}

export function bytesOf(row: Row, column: string): Uint8Array {
  const value = row[column]
  if (!(value instanceof Uint8Array)) throw wrong(column, value)
  return value
}

/** Null where the column is null. */
export function maybe<Answer>(read: (row: Row, column: string) => Answer, row: Row, column: string): Answer | null {
  return row[column] === null || row[column] === undefined ? null : read(row, column)
}
