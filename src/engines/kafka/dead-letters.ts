import { erasingUnsupported } from '../../engine/capability-checks.ts'
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
  type RemoveOptions,
} from '../../engine/dead-letters.ts'
import type { Clock } from '../../time/clock.ts'
import type { AuditedAct } from './dead-letters/audit.ts'
import { errorOf, type TopicLetter, viewOf } from './dead-letters/letter.ts'
import type { LetterLog } from './dead-letters/letter-log.ts'
import { editedReplay, type Resolving, resolveLetters, throwIfTopicMissing } from './dead-letters/resolve.ts'
import type { LetterState, StateView } from './dead-letters/states.ts'
import type { NewRecord } from './record.ts'

export interface FoundLetter {
  /** The id under which the caller knows it: of the job, or of the letter's place in its topic. */
  readonly id: string
  readonly letter: TopicLetter
  readonly state: StateView
}

/** Finds letters in the topics. A log can only be read by offset, so this is all that differs between the two desks. */
export interface LetterLocator {
  list(filter: DeadLetterFilter): Promise<readonly FoundLetter[]>
  /** One answer for each id. Of several letters with the same id, the newest in one of these states. */
  find(ids: readonly string[], states: readonly LetterState[]): Promise<readonly (FoundLetter | null)[]>
}

export interface KafkaDeadLettersParts {
  readonly log: LetterLog
  readonly clock: Clock
  /** What topics begin with before the type. */
  readonly prefix: string
  /** Whose audit entries are shown; null for those of every group. */
  readonly group: string | null
  readonly locator: LetterLocator
}

/** The states and audit entries of a batch are one request, which a broker takes as a whole. */
const BATCH_MAX = 100

type Act = Pick<Resolving, 'from' | 'to' | 'action' | 'by'>

/** Dead letters in topics, under the interface that every engine offers to the desk. */
export class KafkaDeadLetters implements DeadLetters {
  readonly #parts: KafkaDeadLettersParts

  constructor(parts: KafkaDeadLettersParts) {
    this.#parts = parts
  }

  async list(filter: DeadLetterFilter | { readonly ids: readonly string[] }): Promise<readonly DeadLetter[]> {
    const { locator } = this.#parts
    const found =
      'ids' in filter ? await locator.find(filter.ids, ['pending', 'claimed', 'discarded']) : await locator.list(filter)
    return found.flatMap((one) => (one === null ? [] : [this.#shown(one)]))
  }

  requeue(ids: readonly string[], by: Actor, edit?: PayloadEdit): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['pending'], to: 'replayed', action: 'replay', by }, edit)
  }

  discard(ids: readonly string[], by: Actor): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['pending'], to: 'discarded', action: 'discard', by })
  }

  undiscard(ids: readonly string[], by: Actor): Promise<readonly boolean[]> {
    return this.#act(ids, { from: ['discarded'], to: 'pending', action: 'undo', by })
  }

  async remove(ids: readonly string[], by: Actor, { erase = false }: RemoveOptions = {}): Promise<readonly boolean[]> {
    if (erase) throw erasingUnsupported('kafka')
    return this.#act(ids, { from: ['pending', 'discarded'], to: 'removed', action: 'purge', by })
  }

  async note({ who, reason, action, jobId, type, subject, before, after }: AuditNote): Promise<void> {
    const { log, clock, prefix, group } = this.#parts
    const about = { topic: prefix + (type ?? ''), group: group ?? '', jobId: jobId ?? '', subject }
    const entry = { atMs: clock.nowMs(), action, by: { who, reason }, ...about, letter: null, at: null, before, after }
    await log.write([], [entry])
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

  /** Null for entries of other groups, and for releases, which no other engine has. */
  #entryOf({ action, by, topic, group, letter: _, at: __, ...facts }: AuditedAct): AuditEntry | null {
    const { prefix, group: own } = this.#parts
    const isOwn = own === null || group === own || group === ''
    if (action === 'release' || !topic.startsWith(prefix) || !isOwn) return null
    return { ...facts, ...by, action, type: topic.slice(prefix.length) }
  }

  #shown({ id, letter, state }: FoundLetter): DeadLetter {
    const { unreplayable } = letter
    const job = { ...viewOf(letter, state, this.#parts.prefix), id }
    return { job, error: errorOf(letter), ...(unreplayable !== null && { unreplayable }) }
  }

  async #act(ids: readonly string[], act: Act, edit?: PayloadEdit): Promise<readonly boolean[]> {
    const answers: boolean[] = []
    for (let from = 0; from < ids.length; from += BATCH_MAX)
      answers.push(...(await this.#actOn(ids.slice(from, from + BATCH_MAX), act, edit)))
    return answers
  }

  /** The letters of a batch are claimed, written and resolved together. An id that is given twice is acted on once. */
  async #actOn(ids: readonly string[], act: Act, edit?: PayloadEdit): Promise<readonly boolean[]> {
    const { log, locator } = this.#parts
    const found = await locator.find(ids, act.from)
    const records = new Map<TopicLetter, NewRecord | null>()
    const taken = new Set<string>()
    const letters = found.map((one) => {
      if (one === null || taken.has(one.letter.id)) return null
      if (edit !== undefined && this.#shown(one).job.payload !== edit.replaces) return null
      const record = act.action === 'replay' ? editedReplay(one.letter, edit) : null
      if (act.action === 'replay' && record === null) return null
      taken.add(one.letter.id)
      records.set(one.letter, record)
      return one.letter
    })
    const recordsOf = (some: Iterable<TopicLetter>) => [...some].flatMap((letter) => records.get(letter) ?? [])
    await throwIfTopicMissing(log, recordsOf(records.keys()))
    const held = await resolveLetters(this.#parts, [...records.keys()], {
      ...act,
      ...(edit && { edit }),
      perform: async (some) => {
        const written = recordsOf(some)
        if (written.length > 0) await log.produce(written)
      },
    })
    return letters.map((letter) => letter !== null && held.has(letter))
  }
}
