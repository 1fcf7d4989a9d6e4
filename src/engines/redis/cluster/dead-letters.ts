import {
  type AuditEntry,
  type AuditFilter,
  type DeadLetter,
  type DeadLetters,
  matchesAudit,
} from '../../../engine/dead-letters.ts'
import type { RedisEngine } from '../engine.ts'
import type { TypeStores } from './stores.ts'

/**
 * Each type has its own dead letters and its own audit; what is about no type is in the shared one. An act on several ids
 * is asked of every type: one that has no such letter changes nothing.
 */
export function createDeadLetters(stores: TypeStores): DeadLetters {
  const everywhere = async (): Promise<readonly RedisEngine[]> => [...(await stores.every()), stores.shared]
  const act = async (
    ids: readonly string[],
    ask: (letters: DeadLetters) => Promise<readonly boolean[]>,
  ): Promise<readonly boolean[]> => {
    const answers = await Promise.all((await everywhere()).map(({ deadLetters }) => ask(deadLetters)))
    return ids.map((_, index) => answers.some((done) => done[index] === true))
  }
  return {
    async list(filter) {
      if ('type' in filter && filter.type !== undefined) return (await stores.of(filter.type)).deadLetters.list(filter)
      const pages = await Promise.all((await stores.every()).map(({ deadLetters }) => deadLetters.list(filter)))
      if ('ids' in filter) return inOrder(filter.ids, pages.flat())
      return pages.flat().sort(byDeath).slice(0, Math.max(0, filter.limit))
    },
    requeue: (ids, by, edit) => act(ids, (letters) => letters.requeue(ids, by, edit)),
    discard: (ids, by) => act(ids, (letters) => letters.discard(ids, by)),
    undiscard: (ids, by) => act(ids, (letters) => letters.undiscard(ids, by)),
    remove: (ids, by, options) => act(ids, (letters) => letters.remove(ids, by, options)),
    async note(note) {
      // Beside what it is about, so that erasing a job finds it.
      const store = note.type === null ? stores.shared : await stores.enlisted(note.type)
      await store.deadLetters.note(note)
    },
    async audit(filter) {
      const found = await Promise.all((await everywhere()).map((store) => readAudit(store, filter)))
      return found
        .flat()
        .sort((a, b) => b.seq - a.seq)
        .slice(0, filter.limit)
    },
  }
}

function inOrder(ids: readonly string[], letters: readonly DeadLetter[]): readonly DeadLetter[] {
  const byId = new Map(letters.map((letter) => [letter.job.id, letter]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

function byDeath({ job: a }: DeadLetter, { job: b }: DeadLetter): number {
  return (b.completedAtMs ?? 0) - (a.completedAtMs ?? 0) || (a.id < b.id ? 1 : -1)
}

/** Entries read at once. */
const STEP = 200
/** Numbers must grow with time and stay exact: this leaves room until 2058. */
const EPOCH_MS = Date.UTC(2024)
const WITHIN_STORE = 512
const STORES = 16

/**
 * Each store counts its own entries. So that a page can go on behind an entry of any of them, numbers are made from the
 * time, the place within its store, and the store. Entries of one millisecond in two stores have one number once in 16
 * times; at the edge of a page one of them is then left out.
 */
function numbered(entry: AuditEntry, store: string): AuditEntry {
  const which = [...store].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % STORES, 0)
  const seq = ((entry.atMs - EPOCH_MS) * WITHIN_STORE + (entry.seq % WITHIN_STORE)) * STORES + which
  return { ...entry, seq }
}

/** The newest of a store that fit. */
async function readAudit({ deadLetters, database }: RedisEngine, filter: AuditFilter): Promise<readonly AuditEntry[]> {
  const { before: _, ...own } = filter
  const entries: AuditEntry[] = []
  for (let below: number | undefined; entries.length < filter.limit; ) {
    const page = await deadLetters.audit({ ...own, limit: STEP, ...(below !== undefined && { before: below }) })
    const fitting = page
      .map((entry) => numbered(entry, database.keys.prefix))
      .filter((one) => matchesAudit(one, filter))
    entries.push(...fitting)
    if (page.length < STEP) break
    below = page.at(-1)?.seq
  }
  return entries
}
