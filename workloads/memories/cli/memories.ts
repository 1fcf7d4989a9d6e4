/** `millrace memories list`, `search` and `show`. */

import type { CommandCall } from '../../../src/cli/extensions.ts'
import { MillraceError } from '../../../src/errors.ts'
import { checkListLimit } from '../../../src/job/list-limit.ts'
import { textOf } from '../../database/columns.ts'
import type { WorkloadDatabase } from '../../database/database.ts'
import type { Memory } from '../memory.ts'
import { MEMORY_COLUMNS, MemoryRepository, readMemory } from '../repository.ts'
import { idsByWords } from '../search.ts'
import { openMemoryTables } from '../tables.ts'
import { MEMORIES_ENGINE } from './commands.ts'

/** Opens what is there: a mistyped path gets an error, not a new empty file. */
export async function using<Answer>(
  { engine, clock }: CommandCall,
  use: (database: WorkloadDatabase) => Promise<Answer>,
): Promise<Answer> {
  const database = await openMemoryTables(engine ?? MEMORIES_ENGINE, { clock, migrate: false, mustExist: true })
  try {
    return await use(database)
  } finally {
    await database.close()
  }
}

function limitOf({ options }: CommandCall): number {
  return checkListLimit(Number(options.limit))
}

export async function listMemories(call: CommandCall): Promise<void> {
  const { workspace, user, type } = call.options
  const wanted = { workspace_id: workspace, user_id: user, type }
  const given = Object.entries(wanted).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  const conditions = given.map(([column], at) => `${column} = $${at + 2}`)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const rows = await using(call, (database) =>
    database.read(`SELECT ${MEMORY_COLUMNS} FROM {memories} ${where} ORDER BY created_at DESC, seq DESC LIMIT $1`, [
      ...[limitOf(call), ...given.map(([, value]) => value)],
    ]),
  )
  print(call, rows.map(readMemory), 'No memories.')
}

export async function searchByWords(call: CommandCall): Promise<void> {
  const owner = { workspaceId: String(call.options.workspace), userId: String(call.options.user) }
  const found = await using(call, async (database) => {
    const ids = await idsByWords(database, owner, call.arguments.join(' '), limitOf(call))
    return new MemoryRepository(database).findByIds(ids, owner)
  })
  print(call, found, 'No memory has any of these words.')
}

function print(call: CommandCall, memories: readonly Memory[], none: string): void {
  if (call.json) for (const memory of memories) call.terminal.print(JSON.stringify(memory))
  else if (memories.length === 0) call.terminal.print(none)
  else {
    call.table(
      [
        ...[{ title: 'ID' }, { title: 'CREATED' }, { title: 'WORKSPACE' }, { title: 'USER' }, { title: 'TYPE' }],
        ...([{ title: 'IMPORTANCE', align: 'right' }, { title: 'CONTENT' }] as const),
      ],
      memories.map(({ id, createdAt, workspaceId, userId, type, importance, content }) => [
        ...[id, createdAt.toISOString(), workspaceId, userId, type, importance.toFixed(3), shortened(content)],
      ]),
    )
  }
}

const SHOWN_CHARS = 80

function shortened(content: string): string {
  return content.length <= SHOWN_CHARS ? content : `${content.slice(0, SHOWN_CHARS - 1).toWellFormed()}…`
}

function unknownMemory(id: string): MillraceError {
  return new MillraceError('ERR_RECORD_UNKNOWN', `no memory has the id '${id}'; see millrace memories list`)
}

export async function findMemory(database: WorkloadDatabase, id: string): Promise<Memory> {
  const [row] = await database.read(`SELECT ${MEMORY_COLUMNS} FROM {memories} WHERE id = $1`, [id])
  if (row === undefined) throw unknownMemory(id)
  return readMemory(row)
}

export async function showMemory(call: CommandCall): Promise<void> {
  const [id = ''] = call.arguments
  const shown = await using(call, async (database) => {
    const memory = await findMemory(database, id)
    const linked = async (wanted: string, by: string) =>
      (await database.read(`SELECT ${wanted} AS id FROM {memory_merges} WHERE ${by} = $1 ORDER BY 1`, [id])).map(
        (row) => textOf(row, 'id'),
      )
    return {
      ...memory,
      mergedFrom: await linked('source_id', 'target_id'),
      mergedInto: await linked('target_id', 'source_id'),
    }
  })
  if (call.json) return call.terminal.print(JSON.stringify(shown))
  call.facts(Object.entries(shown).map(([name, value]) => [name, factOf(value)]))
}

function factOf(value: unknown): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return '-'
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.join(' ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
