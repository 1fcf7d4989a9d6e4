/** The stores that earlier versions have written, with jobs in every state. They were recorded by record.ts. */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { JobState } from '../../src/job/states.ts'
import { STORES, type Store } from './stores.ts'

const FOLDER = fileURLToPath(new URL('./stores/', import.meta.url))

export interface Recorded {
  /** Such as `sqlite-1-first`: the engine and the version of its schema. */
  readonly name: string
  readonly version: number
  /** The state that each job ends in once workers have run. */
  readonly expected: ReadonlyMap<string, JobState>
  makeStore(): Promise<Store>
}

/** Triggers are left out, because the rows are what they have made. Later rows must get numbers of their own. */
const POSTGRES_ROWS = (rows: string): string => `SET session_replication_role = replica;
${rows}
SELECT setval('millrace_arrivals', 1000), setval('millrace_event_numbers', 1000);`

function recordedIn(file: string): Recorded {
  const name = basename(file, '.sql')
  const [engine = '', version = ''] = name.split('-')
  const sql = readFileSync(join(FOLDER, file), 'utf8')
  const [, json = '{}'] = /^-- (\{.*\})$/m.exec(sql) ?? []
  return {
    name,
    version: Number(version),
    expected: new Map(Object.entries<JobState>(JSON.parse(json))),
    async makeStore() {
      const store = await STORES.find((one) => one.name.toLowerCase() === engine)?.makeStore()
      if (store === undefined) throw new Error(`${file} belongs to no engine`)
      if (!sql.includes('CREATE TABLE')) await store.migrate(Number(version))
      await store.execute(engine === 'postgres' ? POSTGRES_ROWS(sql) : sql)
      return store
    },
  }
}

export const RECORDED: readonly Recorded[] = globSync('*.sql', { cwd: FOLDER }).sort().map(recordedIn)
