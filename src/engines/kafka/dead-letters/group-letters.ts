import type {
  AuditEntry,
  AuditFilter,
  AuditNote,
  By,
  DeadLetter,
  DeadLetterFilter,
  DeadLetters,
  PayloadEdit,
} from '../../../engine/dead-letters.ts'
import { matchesAudit } from '../../../engine/dead-letters.ts'
import type { Clock } from '../../../time/clock.ts'
import type { AuditedAct } from './audit.ts'
import { GroupActs, type JobAct } from './group-acts.ts'
import { type FoundLetter, GroupLookup, type LookupParts, newestFirst } from './group-lookup.ts'
import { isOpen } from './states.ts'
import { errorOf, viewOf } from './view.ts'

export interface GroupLettersParts extends LookupParts {
  readonly clock: Clock
  /** What topics begin with before the type. */
  readonly prefix: string
}

/** The dead letters of one group, as every engine shows them: by the ids of their jobs, whatever topic they stand in. */
export class GroupLetters implements DeadLetters {
  readonly #parts: GroupLettersParts
  readonly #lookup: GroupLookup
  readonly #acts: GroupActs

  constructor(parts: GroupLettersParts) {
    this.#parts = parts
    this.#lookup = new GroupLookup(parts)
    this.#acts = new GroupActs(parts, this.#lookup)
  }

  async list(filter: DeadLetterFilter | { readonly ids: readonly string[] }): Promise<readonly DeadLetter[]> {
    if ('ids' in filter) return this.#named(filter.ids)
    const { type, sinceMs = Number.NEGATIVE_INFINITY, beforeMs = Number.POSITIVE_INFINITY, after, limit } = filter
    const topics = type === undefined ? await this.#parts.topics() : [this.#parts.prefix + type]
    const { letters, book } = await this.#lookup.look(topics)
    const found = letters
      .filter(({ letter, diedAtMs }) => isOpen(book.of(letter)) && diedAtMs >= sinceMs && diedAtMs < beforeMs)
      .sort(newestFirst)
      .filter((one) => after === undefined || newestFirst(one, { diedAtMs: after.completedAtMs, jobId: after.id }) > 0)
      .slice(0, limit)
    return (await this.#lookup.read(found)).map((letter) => this.#shown({ letter, state: book.of(letter.id) }))
  }

  async #named(ids: readonly string[]): Promise<readonly DeadLetter[]> {
    const found = await this.#lookup.find(ids.map((id) => ({ id, from: ['pending', 'claimed', 'discarded'] })))
    return found.filter((letter) => letter !== null).map((letter) => this.#shown(letter))
  }

  requeue(ids: readonly string[], by: By, edit?: PayloadEdit): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['pending'], to: 'replayed', action: 'replay', by, ...(edit && { edit }) })
  }

  discard(ids: readonly string[], by: By): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['pending'], to: 'discarded', action: 'discard', by })
  }

  undiscard(ids: readonly string[], by: By): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['discarded'], to: 'pending', action: 'undo', by })
  }

  remove(ids: readonly string[], by: By): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['pending', 'discarded'], to: 'removed', action: 'purge', by })
  }

  async note({ who, reason, action, jobId, type, subject, before, after }: AuditNote): Promise<void> {
    const { log, clock, prefix, group } = this.#parts
    const about = { topic: prefix + (type ?? ''), group, jobId: jobId ?? '', subject, letter: null, at: null }
    await log.write([], [{ atMs: clock.nowMs(), action, by: { who, reason }, ...about, before, after }])
  }

  async audit(filter: AuditFilter): Promise<readonly AuditEntry[]> {
    const entries: AuditEntry[] = []
    for await (const act of this.#parts.log.audited(filter.before)) {
      if (entries.length >= filter.limit) break
      const entry = this.#entryOf(act)
      if (entry !== null && matchesAudit(entry, filter)) entries.push(entry)
    }
    return entries
  }

  /** By topic of jobs: how many have died in all, and how many of those nobody has decided about. */
  tally(topics: readonly string[]) {
    return this.#lookup.tally(topics)
  }

  /** Null for what concerns others, and for what the desk of topics alone knows. */
  #entryOf({ action, by, topic, group, letter: _, at: __, ...facts }: AuditedAct): AuditEntry | null {
    const { prefix, group: own } = this.#parts
    if (action === 'release' || !topic.startsWith(prefix) || (group !== own && group !== '')) return null
    return { ...facts, ...by, action, type: topic.slice(prefix.length) }
  }

  #shown({ letter, state }: FoundLetter): DeadLetter {
    return { job: viewOf(letter, state, this.#parts.prefix), error: errorOf(letter) }
  }

  #act(ids: readonly string[], act: Omit<JobAct, 'id'>): Promise<readonly boolean[]> {
    return this.#acts.act(ids.map((id) => ({ ...act, id })))
  }
}
