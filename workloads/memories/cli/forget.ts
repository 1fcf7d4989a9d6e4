/** `millrace memories forget`. */
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { open } from '../../../src/client/mill.ts'
import { isMillraceError, OptionError } from '../../../src/errors.ts'
import { errorText } from '../../../src/job/error-record.ts'
import type { WorkloadDatabase } from '../../database/database.ts'
import { notErased } from '../../database/rewrite.ts'
import { openVectorStore, type SqlVectorStore } from '../../embeddings/vectors/store.ts'
import type { Memory } from '../memory.ts'
import { type Forgotten, MemoryRemoval } from '../removal.ts'
import { MEMORIES_NAMESPACE } from '../vectors.ts'
import { MEMORIES_ENGINE } from './commands.ts'
import { findMemory, using } from './memories.ts'

interface Told extends Pick<Forgotten, 'memories' | 'derived'>, Partial<Pick<Forgotten, 'vectors' | 'isErased'>> {
  /** Vectors in another store, which the next `memory-cleanup` removes. */
  readonly vectorsLeft?: boolean
}

export async function forgetMemories(call: CommandCall): Promise<void> {
  await using(call, async (database) => {
    const found = await Promise.all([...new Set(call.arguments)].map((id) => findKnown(database, id)))
    const named = found.filter((memory) => memory !== null)
    const ids = named.map(({ id }) => id)
    if (call.options.dryRun === true) {
      const derived = await new MemoryRemoval({ database, removeVectors: null }).derivedFrom(ids)
      return tell(call, { memories: ids, derived })
    }
    if (call.options.yes !== true) {
      throw new OptionError('forgetting cannot be undone; add --yes, or --dry-run to see what would be removed')
    }
    const forgotten = await forget(call, database, named)
    await audit(call, forgotten)
    tell(call, forgotten)
    if (!forgotten.isErased) throw notErased()
  })
}

/** Null for a memory that was forgotten before: the first time may not have erased it. */
async function findKnown(database: WorkloadDatabase, id: string): Promise<Memory | null> {
  try {
    return await findMemory(database, id)
  } catch (error) {
    if (await wasForgotten(database, id)) return null
    throw error
  }
}

/** Only SQLite can leave it unfinished. */
async function wasForgotten(database: WorkloadDatabase, id: string): Promise<boolean> {
  if (database.dialect.name !== 'sqlite') return false
  const tables = await database.read(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'job_audit'`)
  if (tables.length === 0) return false
  return (await database.read(`SELECT 1 FROM job_audit WHERE action = 'forget' AND subject = $1`, [id])).length > 0
}

async function forget(
  { engine, clock }: CommandCall,
  database: WorkloadDatabase,
  named: readonly Memory[],
): Promise<Told & Forgotten> {
  const store = await vectorStoreOf(engine ?? MEMORIES_ENGINE)
  try {
    const removeVectors = store === null ? null : (ids: readonly string[]) => store.remove(MEMORIES_NAMESPACE, ids)
    const removal = new MemoryRemoval({ database, clock, removeVectors })
    const all = { memories: [] as string[], derived: [] as string[], vectors: 0 }
    for (const { id, workspaceId, userId } of named) {
      const one = await removal.forget({ workspaceId, userId }, [id], { rewrite: false })
      all.memories.push(...one.memories)
      all.derived.push(...one.derived)
      all.vectors += one.vectors
    }
    // Also where all of them were forgotten before.
    return { ...all, isErased: await removal.erase(), vectorsLeft: store === null }
  } finally {
    await store?.close()
  }
}

/** Null where the vectors of memories are not in this database. */
async function vectorStoreOf(engine: string): Promise<SqlVectorStore | null> {
  let store: SqlVectorStore
  try {
    store = await openVectorStore(engine, { migrate: false })
  } catch (error) {
    if (isMillraceError(error, 'ERR_SCHEMA_MISSING')) return null
    throw error
  }
  if ((await store.namespace(MEMORIES_NAMESPACE)) !== null) return store
  await store.close()
  return null
}

/** The audit keeps ids and counts, nothing of the text. */
async function audit({ engine, clock, who, options, terminal }: CommandCall, done: Forgotten): Promise<void> {
  const mill = await open(engine ?? MEMORIES_ENGINE, { clock })
  try {
    for (const id of [...done.memories, ...done.derived]) {
      await mill.note({ who, reason: String(options.reason), action: 'forget', subject: id, before: { memory: id } })
    }
  } catch (error) {
    terminal.complain(`forgotten, but not recorded in the audit: ${errorText(error)}`)
  } finally {
    await mill.close()
  }
}

function tell({ json, terminal, options }: CommandCall, told: Told): void {
  const isDry = options.dryRun === true
  if (json) {
    terminal.print(JSON.stringify({ dryRun: isDry, ...told }))
    return
  }
  const { memories, derived, vectors, vectorsLeft } = told
  const counted = (count: number, one: string, many: string): readonly string[] =>
    count === 0 ? [] : [`${count} ${count === 1 ? one : many}`]
  const parts = [
    ...counted(memories.length, 'memory', 'memories'),
    ...counted(derived.length, 'synthesis', 'syntheses'),
    ...counted(vectors ?? 0, 'vector', 'vectors'),
  ]
  terminal.print(`${isDry ? 'Would remove' : 'Removed'}: ${parts.join(', ') || 'nothing was left'}.`)
  if (vectorsLeft === true)
    terminal.print('Their vectors are not in this database; the next memory-cleanup removes them.')
}
