/**
 * Which packages can work on a store. Every migration is a row of the store's table of versions, and a package refuses a
 * store whose highest version it does not know. The row of a migration that older packages can work with has a minus
 * sign, which hides it from them, also from those that were built before this rule.
 */
import { EngineError } from '../../errors.ts'

export interface Versioned {
  readonly version: number
  /** The version that a package must know to work on the store afterwards; its own unless given. Never less than before. */
  readonly needs?: number
}

export interface StoredVersions {
  /** What a package must know to work on the store. */
  readonly needed: number
  /** The last migration. */
  readonly applied: number
}

/** The columns of a SELECT from the table of versions. */
export const STORED_VERSIONS = 'coalesce(max(version), 0) AS needed, coalesce(max(abs(version)), 0) AS applied'

/** Of a store without that table. */
export const NO_VERSIONS: StoredVersions = { needed: 0, applied: 0 }

export const lastOf = (migrations: readonly Versioned[]): number => migrations.at(-1)?.version ?? 0

/** A newer Millrace may have given columns another meaning: writing to them could lose jobs. */
export function assertNotNewer({ needed }: StoredVersions, known: number): void {
  if (needed <= known) return
  throw new EngineError(
    'ERR_SCHEMA_NEWER',
    `the database has schema version ${needed}, this Millrace knows ${known}; upgrade Millrace, nothing was changed`,
  )
}

/** Whether migrations are missing. Throws if the store needs a newer Millrace. */
export function isBehind(versions: StoredVersions, known: number): boolean {
  assertNotNewer(versions, known)
  return versions.applied < known
}

/** Run after the migration's row was added with a minus sign: from now on its packages need what it says. */
export function raiseNeeded(table: string, { version, needs = version }: Versioned): string {
  return `UPDATE ${table} SET version = -version WHERE version BETWEEN ${-needs} AND -1`
}
