/** Recent starts of a limited type stand in the row that a claim of it locks, so that one statement can count and record them. */
import type { Names } from '../names.ts'
import { startsTable } from './0001-jobs.ts'

export function limitsSql(names: Names): string {
  const { limits } = names
  return `-- When jobs of the type were started, oldest first, and how many then.
ALTER TABLE ${limits} ADD COLUMN IF NOT EXISTS started_at TIMESTAMPTZ[] NOT NULL DEFAULT '{}';
ALTER TABLE ${limits} ADD COLUMN IF NOT EXISTS started INT[] NOT NULL DEFAULT '{}';
DROP TABLE IF EXISTS ${startsTable(names)};`
}
