import { deadLettersOf, inspectorForErasing } from '../engine/capability-checks.ts'
import type { Actor, AuditEntry, AuditFilter, DeadLetters, DeskAction, PayloadEdit } from '../engine/dead-letters.ts'
import { finishedAs } from '../engine/retention.ts'
import { MillraceError, OptionError } from '../errors.ts'
import { Events } from '../events.ts'
import { type AnyJob, defineJob } from '../job/definition.ts'
import { refuseUnknown } from '../job/known-options.ts'
import { checkListLimit } from '../job/list-limit.ts'
import { definitionFor } from '../job/named-jobs.ts'
import { PAYLOAD_BYTES_MAX_DEFAULT } from '../job/options.ts'
import { encodePayload } from '../job/payload.ts'
import { Redaction } from '../job/redaction.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { checkActor, type DeskActor } from './actor.ts'
import { type Bulk, type BulkOptions, type BulkOutcome, runBulk } from './bulk.ts'
import { isHashOf, noteEdit } from './edit-note.ts'
import { type Causes, countedPages, groupLetters, type LetterGroup } from './groups.ts'
import { AUDIT_NAMES, DESK_NAMES, type DeskOptions, type DeskStore } from './options.ts'
import {
  bounded,
  jobsOf,
  type Letter,
  type LetterFilter,
  pagesOf,
  type Selection,
  type ShownLetter,
  type Target,
  toLetter,
  totalOf,
} from './selection.ts'

const REPLAYS_MAX_DEFAULT = 3
const LIST_LIMIT_DEFAULT = 100
const SCAN_PAGE = 1_000
/** SQLite writes its file anew for each page. */
const ERASE_PAGE_MAX = 1_000
/** An in-process engine reads a page synchronously while workers wait. */
const GROUP_PAGE = 200

/**
 * Opens the dead-letter desk of a mill.
 *
 * @example
 * const desk = openDesk(mill, { jobs: [sendInvoice] })
 * await desk.replayAll({ type: 'send-invoice' }, { who: 'ann', reason: 'the mail server is back' })
 */
export function openDesk(
  mill: { readonly engine: DeskStore; readonly events?: Events },
  options: DeskOptions = {},
): Desk {
  return new Desk(mill.engine, options, mill.events)
}

/** Lists dead letters and acts on them. Every act is audited: who, when and why. */
export class Desk {
  readonly #engine: DeskStore
  readonly #events: Events
  readonly #letters: DeadLetters
  readonly #clock: Clock
  readonly #jobs: ReadonlyMap<string, AnyJob>
  readonly #critical: ReadonlySet<string>
  readonly #replaysMax: number
  readonly #bytesMax: number
  readonly #redaction: Redaction

  /** Use `openDesk`. */
  constructor(engine: DeskStore, options: DeskOptions, events: Events = new Events()) {
    refuseUnknown(options, DESK_NAMES, 'openDesk')
    const jobs = options.jobs ?? []
    this.#engine = engine
    this.#events = events
    this.#letters = deadLettersOf(engine)
    this.#clock = options.clock ?? systemClock
    this.#jobs = new Map(jobs.map((job) => [job.type, job]))
    this.#redaction = new Redaction(jobs)
    this.#critical = new Set([
      ...jobs.filter((job) => job.critical).map((job) => job.type),
      ...(options.critical ?? []),
    ])
    this.#replaysMax = options.replaysMax ?? REPLAYS_MAX_DEFAULT
    this.#bytesMax = options.payloadBytesMax ?? PAYLOAD_BYTES_MAX_DEFAULT
    if (!Number.isInteger(this.#replaysMax) || this.#replaysMax < 1)
      throw new OptionError(`'replaysMax' is ${this.#replaysMax}; give a whole number from 1`)
  }

  /** Dead letters, newest first. Default limit: 100. */
  async list(filter: LetterFilter = {}): Promise<readonly Letter[]> {
    const limit = checkListLimit(filter.limit ?? LIST_LIMIT_DEFAULT)
    const letters: Letter[] = []
    const pageMax = filter.search === undefined ? Math.min(limit, SCAN_PAGE) : SCAN_PAGE
    for await (const page of this.#found({ ...filter, limit }, pageMax)) {
      letters.push(...page)
    }
    return letters
  }

  /** Dead letters grouped by the fingerprint of their error, the largest group first. */
  async groups(filter: LetterFilter = {}): Promise<readonly LetterGroup[]> {
    return (await this.causes(filter)).groups
  }

  /** The same, with totals. An aborted `signal` ends the counting early. */
  async causes(filter: LetterFilter = {}, options: { readonly signal?: AbortSignal } = {}): Promise<Causes> {
    const chosen = bounded(filter, this.#clock)
    const listed = () => this.#found(chosen, GROUP_PAGE)
    return groupLetters(countedPages(this.#letters, chosen, listed), chosen, options.signal)
  }

  async show(id: string): Promise<ShownLetter> {
    const letter = await this.#find(id)
    const history = (await this.#engine.inspector?.history(id)) ?? []
    return { ...letter, history, audit: await this.#letters.audit({ jobId: id, limit: LIST_LIMIT_DEFAULT }) }
  }

  /**
   * Puts one letter back into the queue: the same job under the same id, with its options and all its attempts. Rejects if
   * it is not a dead letter, or was replayed too often and `force` is not set. A dry run only checks that.
   */
  async replay(
    id: string,
    by: DeskActor,
    options: { readonly payload?: unknown; readonly force?: boolean; readonly dryRun?: boolean } = {},
  ): Promise<void> {
    refuseUnknown(options, { payload: true, force: true, dryRun: true }, 'replay')
    const act = checkActor(by, 'replay')
    const letter = await this.#find(id)
    const edit = options.payload === undefined ? undefined : await this.#edit(letter, options.payload)
    if (letter.unreplayable !== undefined) throw new MillraceError('ERR_DESK_REFUSED', letter.unreplayable)
    if (options.force !== true && this.#isTired(letter)) {
      throw new MillraceError(
        'ERR_DESK_REFUSED',
        `job ${id} was replayed ${letter.job.replays} times and died each time; fix the cause, then use 'force'`,
      )
    }
    if (options.dryRun === true) {
      if (letter.job.state !== 'dead_letter') throw notReplayable(letter)
      return
    }
    const [isDone] = await this.#letters.requeue([id], act, edit)
    if (isDone !== true) throw notReplayable(letter)
    this.#emit('replay', letter, act)
  }

  /** Replays a selection. Letters that cannot be replayed are counted and left alone. */
  async replayAll(selection: Selection, by: DeskActor, options: BulkOptions = {}): Promise<BulkOutcome> {
    const act = checkActor(by, 'replay')
    return this.#bulk(selection, options, {
      pages: this.#pages(selection),
      emitted: (letter) => this.#emit('replay', letter, act),
      against: (letter) => {
        if (letter.unreplayable !== undefined) return 'unreplayable'
        return this.#isTired(letter) ? 'replayed-too-often' : null
      },
      act: (ids) => this.#letters.requeue(ids, act),
    })
  }

  /** Removes letters from the list. `undo` brings them back while they are stored. Needs a reason. */
  async discard(selection: Selection, by: DeskActor, options: BulkOptions = {}): Promise<BulkOutcome> {
    const act = checkActor(by, 'discard')
    return this.#bulk(selection, options, {
      pages: this.#pages(selection),
      emitted: (letter) => this.#emit('discard', letter, act),
      against: () => null,
      act: (ids) => this.#letters.discard(ids, act),
    })
  }

  /** Makes a discarded job a dead letter again. */
  async undo(id: string, by: DeskActor): Promise<void> {
    const act = checkActor(by, 'undo')
    const [isUndone] = await this.#letters.undiscard([id], act)
    const letter = await this.#find(id)
    if (isUndone === true) return this.#emit('undo', letter, act)
    throw new MillraceError('ERR_STATE_TRANSITION', `job ${id} is not discarded, so there is nothing to undo`)
  }

  /**
   * Deletes letters; discarded ones too, if given by id. Needs a reason. A letter of a critical type is left alone unless
   * it was discarded first or `force` is set.
   */
  async purge(selection: Selection, by: DeskActor, options: BulkOptions = {}): Promise<BulkOutcome> {
    const act = checkActor(by, 'purge')
    return this.#bulk(selection, options, {
      pages: this.#pages(selection),
      emitted: (letter) => this.#emit('purge', letter, act),
      against: ({ job }) => (job.state === 'dead_letter' && this.#critical.has(job.type) ? 'critical' : null),
      act: (ids) => this.#letters.remove(ids, act),
    })
  }

  /**
   * Removes jobs that are over, in whatever state, with all that the store has of them: payload, result, error, progress,
   * key and history, also in the audit, whose entries keep only who, when and why. By ids it also erases what the audit
   * says about jobs that are gone. Needs a reason. A critical dead letter is left alone unless `force` is set.
   *
   * @example
   * await desk.erase({ ids: [id] }, { who: 'ann', reason: 'request 4711 of the customer' })
   */
  async erase(selection: Selection, by: DeskActor, options: BulkOptions = {}): Promise<BulkOutcome> {
    const act = checkActor(by, 'erase')
    const store = { deadLetters: this.#letters, inspector: inspectorForErasing(this.#engine) }
    return this.#bulk<Target>(selection, options, {
      pages: 'ids' in selection ? (pageMax) => jobsOf(store, selection.ids, pageMax) : this.#pages(selection),
      emitted: (job) => this.#emit('erase', job, act),
      against: ({ job: { state, type } }) => {
        if (state === 'dead_letter') return this.#critical.has(type) ? 'critical' : null
        if (state === 'unknown') return 'unknown'
        return state === 'gone' || finishedAs(state) !== null ? null : 'unfinished'
      },
      act: (ids) => this.#letters.remove(ids, act, { erase: true }),
      refusal: 'unfinished',
      pageMax: ERASE_PAGE_MAX,
    })
  }

  /**
   * Whether a hash that the audit has of an edited payload (`after.edit`) is the hash of this payload.
   *
   * @example
   * const [entry] = await desk.audit({ jobId: id, action: 'replay' })
   * await desk.isPayload(entry.after.edit.before, { invoice: 41 })
   */
  isPayload(hash: string, payload: unknown): Promise<boolean> {
    return isHashOf(hash, payload)
  }

  /** The audit, newest first. Default limit: 100. */
  async audit(filter: Partial<AuditFilter> = {}): Promise<readonly AuditEntry[]> {
    refuseUnknown(filter, AUDIT_NAMES, 'audit')
    return this.#letters.audit({ ...filter, limit: checkListLimit(filter.limit ?? LIST_LIMIT_DEFAULT) })
  }

  async #bulk<Item extends Target>(
    given: Selection,
    options: BulkOptions,
    rules: Pick<Bulk<Item>, 'pages' | 'pageMax' | 'against' | 'refusal'> & {
      act(ids: readonly string[]): Promise<readonly boolean[]>
      /** Called for each that was acted on. */
      emitted(item: Item): void
    },
  ): Promise<BulkOutcome> {
    const selection = bounded(given, this.#clock)
    const limit = 'ids' in selection ? undefined : selection.limit
    const act = async (items: readonly Item[]): Promise<readonly boolean[]> => {
      const answers = await rules.act(items.map(({ job }) => job.id))
      for (const [index, item] of items.entries()) if (answers[index] === true) rules.emitted(item)
      return answers
    }
    const total = await totalOf(selection, this.#engine.counts?.bind(this.#engine))
    const bulk = { clock: this.#clock, selection, limit: limit ?? Number.POSITIVE_INFINITY, total }
    return runBulk({ ...bulk, ...rules, act }, options)
  }

  /** Without the limit, which counts only letters that were acted on. */
  #pages(selection: Selection): (pageMax: number) => AsyncIterable<readonly Letter[]> {
    const { limit: _, ...found } = { limit: undefined, ...selection }
    return (pageMax) => this.#found(found, pageMax)
  }

  #found(selection: Selection, pageMax: number): AsyncGenerator<readonly Letter[]> {
    return pagesOf(this.#letters, bounded(selection, this.#clock), pageMax, this.#redaction)
  }

  #emit(action: DeskAction, { job }: Target, { who }: Actor): void {
    this.#events.emit('desk.acted', { action, id: job.id, type: job.type, who })
  }

  #isTired({ job }: Letter): boolean {
    return job.replays >= this.#replaysMax
  }

  async #find(id: string): Promise<Letter> {
    const [letter] = await this.#letters.list({ ids: [id] })
    if (letter !== undefined) return toLetter(letter)
    throw new MillraceError(
      'ERR_JOB_UNKNOWN',
      `Dead letter not found: ${id}; it never died, was replayed or was removed; look at the job and the audit`,
    )
  }

  /** Without a definition, the payload must only be JSON and keeps its version. */
  async #edit({ job }: Letter, payload: unknown): Promise<PayloadEdit> {
    const ofType = this.#jobs.get(job.type)
    const name = job.options?.name
    const definition = ofType && definitionFor(ofType, name)
    const text = await encodePayload(definition ?? defineJob({ type: job.type }), payload, this.#bytesMax)
    const note = await noteEdit(this.#redaction, { type: job.type, name }, { before: job.payload, after: text })
    const payloadVersion = definition?.version ?? job.payloadVersion
    return { payload: text, payloadVersion, replaces: job.payload, note }
  }
}

function notReplayable({ job }: Letter): MillraceError {
  const why =
    job.state === 'dead_letter'
      ? 'it was replayed or edited meanwhile, a live job has its key, or its latest key has a newer version'
      : `it is ${job.state}; undo that first`
  return new MillraceError('ERR_STATE_TRANSITION', `job ${job.id} cannot be replayed: ${why}`)
}
