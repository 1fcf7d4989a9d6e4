import { deadLettersOf } from '../engine/capability-checks.ts'
import type { Actor, AuditEntry, AuditFilter, DeadLetters, DeskAction, PayloadEdit } from '../engine/dead-letters.ts'
import type { Engine } from '../engine/engine.ts'
import { MillraceError, OptionError } from '../errors.ts'
import { Events } from '../events.ts'
import { type AnyJob, defineJob } from '../job/definition.ts'
import type { JobEvent } from '../job/job.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { PAYLOAD_BYTES_MAX_DEFAULT } from '../job/options.ts'
import { encodePayload } from '../job/payload.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { checkActor, type DeskActor } from './actor.ts'
import { type BulkOptions, type BulkOutcome, type Refusal, runBulk } from './bulk.ts'
import { type Causes, groupLetters, type LetterGroup } from './groups.ts'
import { checkFilter, type Letter, type LetterFilter, pagesOf, type Selection, toLetter } from './selection.ts'

/** What a desk needs of an engine. Without `counts`, bulk acts do not know their total. */
export type DeskStore = Pick<Engine, 'name' | 'deadLetters'> & Partial<Pick<Engine, 'counts' | 'inspector'>>

export interface DeskOptions {
  /** Edited payloads are checked against these definitions, and `critical` ones are protected from purging. */
  readonly jobs?: readonly AnyJob[]
  /** More types that `purge` refuses without `force`. */
  readonly critical?: readonly string[]
  /** How often a letter can be replayed without `force`. Default: 3. */
  readonly replaysMax?: number
  readonly payloadBytesMax?: number
  readonly clock?: Clock
}

const DESK_NAMES: OptionNames<DeskOptions> = {
  jobs: true,
  critical: true,
  replaysMax: true,
  payloadBytesMax: true,
  clock: true,
}

export interface ShownLetter extends Letter {
  readonly history: readonly JobEvent[]
  /** The audit of this letter, newest first. */
  readonly audit: readonly AuditEntry[]
}

const AUDIT_NAMES: OptionNames<AuditFilter> = {
  jobId: true,
  who: true,
  action: true,
  limit: true,
  before: true,
}

const REPLAYS_MAX_DEFAULT = 3
const LIST_LIMIT_DEFAULT = 100
const LIST_LIMIT_MAX = 10_000
const SCAN_PAGE = 1_000
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

  /** Use `openDesk`. */
  constructor(engine: DeskStore, options: DeskOptions, events: Events = new Events()) {
    refuseUnknown(options, DESK_NAMES, 'openDesk')
    const jobs = options.jobs ?? []
    this.#engine = engine
    this.#events = events
    this.#letters = deadLettersOf(engine)
    this.#clock = options.clock ?? systemClock
    this.#jobs = new Map(jobs.map((job) => [job.type, job]))
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
    const limit = checkLimit(filter.limit ?? LIST_LIMIT_DEFAULT)
    const letters: Letter[] = []
    for await (const page of pagesOf(this.#letters, { ...filter, limit }, Math.min(limit, SCAN_PAGE))) {
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
    return groupLetters(pagesOf(this.#letters, filter, GROUP_PAGE), filter, options.signal)
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
    if (isUndone === true) {
      this.#emit('undo', letter, act)
      return
    }
    throw new MillraceError('ERR_STATE_TRANSITION', `job ${id} is not discarded, so there is nothing to undo`)
  }

  /**
   * Deletes letters; discarded ones too, if given by id. Needs a reason. A letter of a critical type is left alone unless
   * it was discarded first or `force` is set.
   */
  async purge(selection: Selection, by: DeskActor, options: BulkOptions = {}): Promise<BulkOutcome> {
    const act = checkActor(by, 'purge')
    return this.#bulk(selection, options, {
      emitted: (letter) => this.#emit('purge', letter, act),
      against: ({ job }) => (job.state === 'dead_letter' && this.#critical.has(job.type) ? 'critical' : null),
      act: (ids) => this.#letters.remove(ids, act),
    })
  }

  /** The audit, newest first. Default limit: 100. */
  async audit(filter: Partial<AuditFilter> = {}): Promise<readonly AuditEntry[]> {
    refuseUnknown(filter, AUDIT_NAMES, 'audit')
    return this.#letters.audit({ ...filter, limit: checkLimit(filter.limit ?? LIST_LIMIT_DEFAULT) })
  }

  async #bulk(
    selection: Selection,
    options: BulkOptions,
    rules: {
      against(letter: Letter): Refusal | null
      act(ids: readonly string[]): Promise<readonly boolean[]>
      /** Called for each letter that was acted on. */
      emitted(letter: Letter): void
    },
  ): Promise<BulkOutcome> {
    const { limit = Number.POSITIVE_INFINITY, ...found } =
      'ids' in selection ? { ...selection, limit: undefined } : checkFilter(selection)
    const pages = (pageMax: number) => pagesOf(this.#letters, found, pageMax)
    const act = async (letters: readonly Letter[]): Promise<readonly boolean[]> => {
      const answers = await rules.act(letters.map(({ job }) => job.id))
      for (const [index, letter] of letters.entries()) if (answers[index] === true) rules.emitted(letter)
      return answers
    }
    const total = await this.#total(selection)
    return runBulk({ clock: this.#clock, selection, limit, total, pages, ...rules, act }, options)
  }

  #emit(action: DeskAction, { job }: Letter, { who }: Actor): void {
    this.#events.emit('desk.acted', { action, id: job.id, type: job.type, who })
  }

  /** Counting by fingerprint or time would read everything twice. */
  async #total(selection: Selection): Promise<number | null> {
    if ('ids' in selection) return new Set(selection.ids).size
    const { type, fingerprint, sinceMs, beforeMs, limit = Number.POSITIVE_INFINITY } = selection
    // The selection of a dry run or a group: its limit is its count.
    if (beforeMs !== undefined && Number.isFinite(limit)) return limit
    if (fingerprint !== undefined || sinceMs !== undefined || beforeMs !== undefined) return null
    const found = await this.#engine.counts?.()
    if (found === undefined) return null
    const counts = Object.entries(found)
    const dead = counts.filter(([name]) => type === undefined || name === type).map(([, { dead }]) => dead)
    return Math.min(
      limit,
      dead.reduce((sum, count) => sum + count, 0),
    )
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
    const definition = this.#jobs.get(job.type)
    const text = await encodePayload(definition ?? defineJob({ type: job.type }), payload, this.#bytesMax)
    return { payload: text, payloadVersion: definition?.version ?? job.payloadVersion }
  }
}

function notReplayable({ job }: Letter): MillraceError {
  const why =
    job.state === 'dead_letter'
      ? 'it was replayed meanwhile, a live job has its key, or its latest key has a newer version'
      : `it is ${job.state}; undo that first`
  return new MillraceError('ERR_STATE_TRANSITION', `job ${job.id} cannot be replayed: ${why}`)
}

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIST_LIMIT_MAX) return limit
  throw new OptionError(`'limit' is ${limit}; give a whole number from 1 to ${LIST_LIMIT_MAX}`)
}
