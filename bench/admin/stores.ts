/** Large stores to measure the admin API and the dashboard on. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { applyMigrations } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { startPostgres } from '../../test/servers/postgres.ts'
import { type Filling, filling, fillPostgres, fillSqlite } from './fill.ts'

const text = { type: 'string' } as const

export interface LargeStore {
  readonly engine: string
  readonly url: string
  readonly filled: Filling
}

/** The options of the command: how many jobs and rounds, and stores that are kept. */
export function readSizes(roundsStandard: number) {
  const { values } = parseArgs({ options: { jobs: text, rounds: text, sqlite: text, postgres: text } })
  const { sqlite, postgres } = values
  return { jobs: Number(values.jobs ?? 1_000_000), rounds: Number(values.rounds ?? roundsStandard), sqlite, postgres }
}

/** One store after another. One that is given is filled if it is empty, and kept; others are gone afterwards. */
export async function* largeStores({
  jobs,
  sqlite,
  postgres,
}: ReturnType<typeof readSizes>): AsyncGenerator<LargeStore> {
  const migrate = (url: string) => applyMigrations(url, { clock: systemClock, migrate: true })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-admin-'))
  try {
    const file = sqlite ?? join(folder, 'jobs.db')
    await migrate(`sqlite:${file}`)
    yield { engine: 'sqlite', url: `sqlite:${file}`, filled: fillSqlite(file, filling(jobs)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const own = postgres === undefined ? await startPostgres() : null
  try {
    const url = own?.url ?? postgres ?? ''
    await migrate(url)
    yield { engine: 'postgres', url, filled: await fillPostgres(url, filling(jobs)) }
  } finally {
    await own?.stop()
  }
}
