import { Batcher } from '../../../engine/batcher.ts'
import {
  type Actor,
  type AuditEntry,
  type AuditFilter,
  type AuditNote,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetters,
  matchesAudit,
  type PayloadEdit,
} from '../../../engine/dead-letters.ts'
import { isMillraceError } from '../../../errors.ts'
import type { Clock } from '../../../time/clock.ts'
import type { NewRecord } from '../record.ts'
import type { AuditedAct } from './audit.ts'
import { errorOf, type TopicLetter, viewOf } from './letter.ts'
import { type FoundLetter, LetterLookup, type LookupParts, newestFirst } from './letter-index.ts'
import type { LetterLog } from './letter-log.ts'
import { editedReplay, type Resolving, resolveLetters, throwIfTopicMissing } from './resolve.ts'
import { isOpen } from './states.ts'

export interface KafkaDeadLettersParts extends LookupParts {
  readonly clock: Clock
  /** What topics begin with before the type. */
  readonly prefix: string
}

/** The dead letters of one group, as every engine shows them: by the ids of their jobs, whatever topic they stand in. */
export class KafkaDeadLetters implements DeadLetters {
  readonly #parts: KafkaDeadLettersParts
  readonly #lookup: LetterLookup
  readonly #acts: LetterActs

  constructor(parts: KafkaDeadLettersParts) {
    this.#parts = parts
    this.#lookup = new LetterLookup(parts)
    this.#acts = new LetterActs(parts, this.#lookup)
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

  requeue(ids: readonly string[], by: Actor, edit?: PayloadEdit): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['pending'], to: 'replayed', action: 'replay', by, ...(edit && { edit }) })
  }

  discard(ids: readonly string[], by: Actor): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['pending'], to: 'discarded', action: 'discard', by })
  }

  undiscard(ids: readonly string[], by: Actor): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['discarded'], to: 'pending', action: 'undo', by })
  }

  remove(ids: readonly string[], by: Actor): Promise<readonly boolean[]> {
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

/** What is to be done to one job's letter. */
export interface JobAct extends Pick<Resolving, 'from' | 'to' | 'action'> {
  readonly id: string
  readonly by: Actor
  readonly edit?: PayloadEdit
}

interface LetterAct extends JobAct {
  readonly letter: TopicLetter
  /** What goes back to its topic, for a replay. */
  readonly record: NewRecord | null
}

const ITEMS_MAX = 100

/** Acts of one group's operators. Those that come together are claimed, written and resolved together. */
export class LetterActs {
  readonly #parts: { readonly log: LetterLog; readonly clock: Clock; readonly prefix: string }
  readonly #lookup: LetterLookup
  readonly #acting: Batcher<JobAct, boolean>

  constructor(
    parts: { readonly log: LetterLog; readonly clock: Clock; readonly prefix: string },
    lookup: LetterLookup,
  ) {
    this.#parts = parts
    this.#lookup = lookup
    this.#acting = new Batcher((acts) => this.#actNow(acts), {
      ...{ flightsMax: 1, itemsMax: ITEMS_MAX },
      // Found out before anything was claimed: whose topic is there need not suffer for the other.
      isWorthRepeating: (error) => isMillraceError(error, 'ERR_SCHEMA_MISSING'),
    })
  }

  /** Whether each was done, in their order. */
  act(acts: readonly JobAct[]): Promise<readonly boolean[]> {
    return this.#acting.add(acts)
  }

  async #actNow(acts: readonly JobAct[]): Promise<readonly boolean[]> {
    const found = await this.#lookup.find(acts)
    const chosen = new Map<JobAct, LetterAct>()
    const taken = new Set<string>()
    for (const [index, act] of acts.entries()) {
      const letter = found[index]?.letter
      const record = letter === undefined || act.action !== 'replay' ? null : editedReplay(letter, act.edit)
      // Of two acts on one letter the first has it; what nobody knows the origin of cannot go back.
      if (letter === undefined || taken.has(letter.id) || (act.action === 'replay' && record === null)) continue
      taken.add(letter.id)
      chosen.set(act, { ...act, letter, record })
    }
    await throwIfTopicMissing(this.#parts.log, recordsOf([...chosen.values()]))
    const done = new Set<TopicLetter>()
    const alike = Map.groupBy(chosen.values(), ({ action, by }) => JSON.stringify([action, by]))
    for (const some of alike.values()) for (const letter of await this.#resolve(some)) done.add(letter)
    return acts.map((act) => {
      const one = chosen.get(act)
      return one !== undefined && done.has(one.letter)
    })
  }

  async #resolve(acts: readonly LetterAct[]): Promise<Iterable<TopicLetter>> {
    const [first] = acts
    if (first === undefined) return []
    const { from, to, action, by } = first
    const { held } = await resolveLetters(
      this.#parts,
      acts.map(({ letter }) => letter),
      {
        ...{ from, to, action, by },
        edits: new Map(acts.flatMap(({ letter, edit }) => (edit === undefined ? [] : [[letter, edit]]))),
        perform: async (some) => {
          const records = recordsOf(acts.filter(({ letter }) => some.includes(letter)))
          if (records.length > 0) await this.#parts.log.produce(records)
        },
      },
    )
    return held
  }
}

function recordsOf(acts: readonly LetterAct[]): readonly NewRecord[] {
  return acts.flatMap(({ record }) => record ?? [])
}
