/**
 * Records a store as an earlier version of the sources leaves it, with jobs in every state: `record.ts <sources> <engine url>`
 * prints its rows as SQL, for a schema that the migrations up to that version have made. The files in stores/ were made with
 * it from the commits that brought a new schema. With `--tables` a SQLite store is printed with its tables, for the first
 * packages, whose version 1 no migration makes any more.
 */
import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type * as Millrace from '../../src/index.ts'
import type { JobState } from '../../src/job/states.ts'
import { query } from '../servers/postgres.ts'

const [sources = '', url = '', tables] = process.argv.slice(2)
const { defineJob, open }: typeof Millrace = await import(pathToFileURL(`${sources}/src/index.ts`).href)
const expected: Record<string, JobState> = {}

const recorded = defineJob({
  type: 'recorded',
  attempts: 2,
  backoff: { kind: 'fixed', delay: '10ms' },
  run: ({ payload }) => {
    const { deed } = Object(payload)
    if (deed === 'die')
      throw Object.assign(new Error('this one always fails'), { stack: 'at run (/app/record.ts:1:1)' })
    if (deed === 'hang') return new Promise(() => {})
    return { deed }
  },
})
const later = defineJob({ type: 'later' })

const mill = await open(url)
const add = async (expects: JobState, ...job: Parameters<typeof mill.enqueue>): Promise<string> => {
  const { id } = await mill.enqueue(...job)
  expected[id] = expects
  return id
}
/** What the version did not have yet is left out. */
const attempt = async (act: () => Promise<unknown>): Promise<void> => {
  await act().catch((error: unknown) => console.error(`left out: ${error}`))
}

const finished = [
  await add('completed', recorded, { deed: 'fine' }),
  await add('dead_letter', recorded, { deed: 'die' }),
  await add('dead_letter', recorded, { deed: 'die' }, { key: 'dead-key' }),
]
await add('completed', recorded, { deed: 'hang' })
// A newer version will wait for it, and run instead of it.
const hanging = await add('superseded', recorded, { deed: 'hang' }, { latest: 'document-1' })
const states = new Set<string | undefined>()
await mill.work([recorded], { concurrency: 4 })
do {
  await sleep(50)
  states.clear()
  for (const id of finished) states.add((await mill.job(id))?.state)
} while (states.has('queued') || states.has('in_progress') || (await mill.job(hanging))?.state !== 'in_progress')

await add('completed', later, { n: 1 }, { priority: 1, key: 'live-key' })
await add('completed', later, { n: 2 }, { delay: '1m' })
const cancelled = await add('cancelled', later, { n: 3 })
await mill.cancel(cancelled, { who: 'ann', reason: 'recorded' })
await add('superseded', later, { n: 4 }, { latest: 'document-2' })
await add('completed', later, { n: 5 }, { latest: 'document-2' })
await add('completed', recorded, { deed: 'fine' }, { latest: 'document-1' })
await attempt(async () => {
  const first = await add('completed', later, { n: 6 }, { delay: '1m' })
  await add('completed', later, { n: 7 }, { after: [first] })
})
await attempt(async () => mill.schedules.upsert('nightly', { type: 'later', cron: '0 3 * * *', payload: { n: 8 } }))
await attempt(async () => mill.pause('paused', { who: 'ann', reason: 'recorded' }))

console.log(`-- ${JSON.stringify(expected)}`)
console.log(url.startsWith('sqlite:') ? dumpOfFile(url.slice('sqlite:'.length)) : await rowsOfSchema(url))
// Without a goodbye: what it holds stays leased.
process.exit(0)

function dumpOfFile(file: string): string {
  const { stdout } = spawnSync('sqlite3', [file, '.dump'], { encoding: 'utf8' })
  if (tables !== undefined) return stdout
  const isRow = (line: string): boolean => /^INSERT INTO (?!millrace_schema)/.test(line)
  return stdout.split('\n').filter(isRow).join('\n')
}

async function rowsOfSchema(address: string): Promise<string> {
  const schema = new URL(address).searchParams.get('schema')
  const tables = await query<{ name: string }>(
    address,
    `select relname as name from pg_class where relnamespace = '${schema}'::regnamespace and relkind = 'r' order by 1`,
  )
  const inserts: string[] = []
  for (const { name } of tables.filter((table) => table.name !== 'millrace_schema')) {
    const found = await query<{ row: Readonly<Record<string, unknown>> }>(
      address,
      `select json_strip_nulls(to_json(t)) as row from ${schema}.${name} t`,
    )
    if (found.length === 0) continue
    const rows = found.map(({ row }) => JSON.stringify(row).replaceAll("'", "''"))
    inserts.push(
      `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${name}, '[\n${rows.join(',\n')}]');`,
    )
  }
  return inserts.join('\n')
}
