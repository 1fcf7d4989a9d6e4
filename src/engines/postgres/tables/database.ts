/** A row as a driver hands it over. Our statements return text only, so that type parsers of the user's do not matter. */
export type Row = Readonly<Record<string, unknown>>

/**
 * The part of `pg` that is used here: a Pool, a Client, or anything that runs one statement with parameters.
 * Every call is one statement and thereby one transaction, so a pooler in transaction mode may stand between.
 */
export interface Database {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly Row[] }>
}

export function textOf(row: Row, column: string): string | null {
  const value = row[column]
  return value === null || value === undefined ? null : String(value)
}

export function numberOf(row: Row, column: string): number | null {
  const text = textOf(row, column)
  return text === null ? null : Number(text)
}
