/** Finds the memories of one owner by meaning, by words, or by both. */

import { OptionError } from '../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { checkListLimit } from '../../src/job/list-limit.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { textOf } from '../database/columns.ts'
import type { Dialect, WorkloadDatabase } from '../database/database.ts'
import { phrasesOf } from '../database/full-text.ts'
import { checkOwner, type Memory, type Owner } from './memory.ts'
import type { MemoryRepository } from './repository.ts'
import type { MemoryVectors } from './vectors.ts'

export interface MemorySearch extends Owner {
  readonly text: string
  /** `meaning` by vectors, `words` by full text, or the ranks of both together; default: `both`. */
  readonly by?: 'meaning' | 'words' | 'both'
  /** 1 to 200; default: 10. */
  readonly limit?: number
  readonly signal?: AbortSignal
}

export interface FoundMemory {
  readonly memory: Memory
  /** Higher is better. Comparable within one answer: a cosine similarity for `meaning`, sums of ranks for the others. */
  readonly score: number
}

const NAMES: OptionNames<MemorySearch> = {
  ...{ workspaceId: true, userId: true, text: true, by: true, limit: true, signal: true },
}

const LIMIT_MAX = 200
/** Longer texts are questions to a model, not to an index. */
const TEXT_CHARS_MAX = 10_000
const WORDS_MAX = 64
/** How many of each kind are ranked together, at least. */
const CANDIDATES_MIN = 50
/** Of reciprocal rank fusion: the usual constant, which keeps first places from deciding alone. */
const RANK_OFFSET = 60

/** Those that have any of the words. SQLite ranks rare words higher (bm25), Postgres only counts (ts_rank). */
const BY_WORDS: Readonly<Record<Dialect['name'], string>> = {
  sqlite: `SELECT m.id FROM {memories_fts} f JOIN {memories} m ON m.seq = f.rowid
WHERE memories_fts MATCH $3 AND m.workspace_id = $1 AND m.user_id = $2 ORDER BY f.rank, m.seq LIMIT $4`,
  postgres: `WITH asked AS (
  SELECT string_agg('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''', ' | ')::tsquery AS query
  FROM unnest(to_tsvector('simple', $3)))
SELECT m.id FROM {memories} m, asked WHERE m.words @@ asked.query AND m.workspace_id = $1 AND m.user_id = $2
ORDER BY ts_rank(m.words, asked.query) DESC, m.seq LIMIT $4`,
}

export interface SearchParts {
  readonly repository: MemoryRepository
  readonly vectors: MemoryVectors
  readonly clock?: Clock
}

/** Expired memories are not found, whether they are removed yet or not. */
export async function searchMemories(search: MemorySearch, parts: SearchParts): Promise<readonly FoundMemory[]> {
  refuseUnknown(search, NAMES, 'search')
  const { text, by = 'both', limit = 10 } = search
  const owner = checkOwner(search)
  checkText(text)
  checkListLimit(limit, LIMIT_MAX)
  const candidates = Math.max(limit * 2, CANDIDATES_MIN)
  const ranked = await rank(by, { ...search, ...owner }, candidates, parts)
  const found = await parts.repository.findByIds([...ranked.keys()], owner)
  const nowMs = (parts.clock ?? systemClock).nowMs()
  return found
    .filter(({ expiresAt }) => expiresAt === null || expiresAt.getTime() > nowMs)
    .map((memory) => ({ memory, score: ranked.get(memory.id) ?? 0 }))
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
}

async function rank(
  by: NonNullable<MemorySearch['by']>,
  search: MemorySearch,
  limit: number,
  { repository, vectors }: SearchParts,
): Promise<ReadonlyMap<string, number>> {
  const { text, signal } = search
  const meaning = () => vectors.search(search, text, { limit, ...(signal !== undefined && { signal }) })
  const words = () => idsByWords(repository.database, search, text, limit)
  switch (by) {
    case 'meaning':
      return new Map((await meaning()).map(({ id, score }) => [id, score]))
    case 'words':
      return fused([await words()])
    case 'both': {
      const [near, worded] = await Promise.all([meaning(), words()])
      return fused([near.map(({ id }) => id), worded])
    }
    default:
      by satisfies never
      throw new OptionError(`'by' is '${String(by)}'; give 'meaning', 'words' or 'both'`)
  }
}

/** Reciprocal rank fusion: scores of the two kinds cannot be compared, places can. */
function fused(lists: readonly (readonly string[])[]): ReadonlyMap<string, number> {
  const scores = new Map<string, number>()
  for (const list of lists) {
    for (const [at, id] of list.entries()) scores.set(id, (scores.get(id) ?? 0) + 1 / (RANK_OFFSET + at + 1))
  }
  return scores
}

/** The best match first. Any text is a valid query; without a word it finds nothing. */
export async function idsByWords(
  database: WorkloadDatabase,
  { workspaceId, userId }: Owner,
  text: string,
  limit: number,
): Promise<readonly string[]> {
  const phrases = [...new Set(phrasesOf(text))].slice(0, WORDS_MAX)
  if (phrases.length === 0) return []
  const { name } = database.dialect
  // Postgres takes the words apart itself, so it gets them without quotes and prefixes.
  const query = name === 'sqlite' ? phrases.join(' OR ') : text.replaceAll('\0', ' ')
  const rows = await database.read(BY_WORDS[name], [workspaceId, userId, query, limit])
  return rows.map((row) => textOf(row, 'id'))
}

function checkText(text: unknown): void {
  if (typeof text === 'string' && text.trim() !== '' && text.length <= TEXT_CHARS_MAX) return
  throw new OptionError(`'text' must be a text of 1 to ${TEXT_CHARS_MAX} characters; give what you look for`)
}
