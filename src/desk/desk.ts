import { deadLettersOf } from '../engine/admission.ts'
import type { AuditEntry, AuditFilter, By, DeadLetters, DeskAction, PayloadEdit } from '../engine/dead-letters.ts'
import type { Engine } from '../engine/engine.ts'
import { MillraceError, OptionError } from '../errors.ts'
import { Events } from '../events.ts'
import { type AnyJob, defineJob } from '../job/definition.ts'
import type { JobEvent } from '../job/job.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { PAYLOAD_BYTES_MAX_DEFAULT } from '../job/options.ts'
import { encodePayload } from '../job/payload.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { type BulkOptions, type BulkOutcome, type Refusal, runBulk } from './bulk.ts'
import { type Causes, groupLetters, type LetterGroup } from './groups.ts'
import { type Letter, type LetterFilter, pagesOf, type Selection, toLetter } from './selection.ts'

export interface DeskOptions {
  /** Definitions: an edited payload is checked against them, and those that are `critical` are protected. */
  readonly jobs?: readonly AnyJob[]
  /** More types that a purge refuses unless forced. */
  readonly critical?: readonly string[]
  /** How often a letter may be replayed before it takes force: 3 unless told. */
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

/** Who acts. A reason is needed to discard or purge, and welcome otherwise. */
export interface Acting {
  readonly who: string
  readonly reason?: string
}

export interface ShownLetter extends Letter {
  readonly history: readonly JobEvent[]
  /** What was done to it at the desk, newest first. */
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
/** An engine in this process reads a page in one go, and the workers wait meanwhile. */
const GROUP_PAGE = 200

/**
 * Opens the dead-letter desk of a mill.
 *
 * @example
 * const desk = openDesk(mill, { jobs: [sendInvoice] })
 * await desk.replayAll({ type: 'send-invoice' }, { who: 'ann', reason: 'the mail server is back' })
 */
export function openDesk(mill: { readonly engine: Engine; readonly events?: Events }, options: DeskOptions = {}): Desk {
  return new Desk(mill.engine, options, mill.events)
}

/** Looks at dead letters and decides about them. Every act is audited with who, when and why. */
export class Desk {
  readonly #engine: Engine
  readonly #events: Events
  readonly #letters: DeadLetters
  readonly #clock: Clock
  readonly #jobs: ReadonlyMap<string, AnyJob>
  readonly #critical: ReadonlySet<string>
  readonly #replaysMax: number
  readonly #bytesMax: number

  /** Use `openDesk`. */
  constructor(engine: Engine, options: DeskOptions, events: Events = new Events()) {
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

  /** Dead letters, newest first; a hundred unless told. */
  async list(filter: LetterFilter = {}): Promise<readonly Letter[]> {
    const limit = checkLimit(filter.limit ?? LIST_LIMIT_DEFAULT)
    const letters: Letter[] = []
    for await (const page of pagesOf(this.#letters, { ...filter, limit }, Math.min(limit, SCAN_PAGE))) {
      letters.push(...page)
    }
    return letters
  }

  /** What has gone wrong, and how often: dead letters by the fingerprint of their error, the largest group first. */
  async groups(filter: LetterFilter = {}): Promise<readonly LetterGroup[]> {
    return (await this.causes(filter)).groups
  }

  /** The same with the number of letters counted. An aborted `signal` ends the counting early. */
  async causes(filter: LetterFilter = {}, options: { readonly signal?: AbortSignal } = {}): Promise<Causes> {
    return groupLetters(pagesOf(this.#letters, filter, GROUP_PAGE), filter, options.signal)
  }

  async show(id: string): Promise<ShownLetter> {
    const letter = await this.#find(id)
    const history = (await this.#engine.inspector?.history(id)) ?? []
    return { ...letter, history, audit: await this.#letters.audit({ jobId: id, limit: LIST_LIMIT_DEFAULT }) }
  }

  /**
   * Puts one letter back into the queue: the same job under the same id, with all its options and no attempts used.
   * Throws when it is no dead letter, or was replayed too often and this is not forced. A dry run only throws.
   */
  async replay(
    id: string,
    by: Acting,
    options: { readonly payload?: unknown; readonly force?: boolean; readonly dryRun?: boolean } = {},
  ): Promise<void> {
    refuseUnknown(options, { payload: true, force: true, dryRun: true }, 'replay')
    const act = checkActing(by, 'replay')
    const letter = await this.#find(id)
    const edit = options.payload === undefined ? undefined : await this.#edit(letter, options.payload)
    if (options.force !== true && this.#isTired(letter)) {
      throw new MillraceError(
        'ERR_DESK_REFUSED',
        `job ${id} was replayed ${letter.job.replays} times and died each time; mend the cause, then force it`,
      )
    }
    if (options.dryRun === true) {
      if (letter.job.ended !== null) throw notReplayable(letter)
      return
    }
    const [isDone] = await this.#letters.requeue([id], act, edit)
    if (isDone !== true) throw notReplayable(letter)
    this.#tell('replay', letter, act)
  }

  /** The same for a selection. Those that cannot be replayed are counted and left as they are. */
  async replayAll(selection: Selection, by: Acting, options: BulkOptions = {}): Promise<BulkOutcome> {
    const act = checkActing(by, 'replay')
    return this.#bulk(selection, options, {
      told: (letter) => this.#tell('replay', letter, act),
      against: (letter) => (this.#isTired(letter) ? 'replayed-too-often' : null),
      act: (ids) => this.#letters.requeue(ids, act),
    })
  }

  /** Takes letters off the list for good, unless it is undone while they are still kept. Needs a reason. */
  async discard(selection: Selection, by: Acting, options: BulkOptions = {}): Promise<BulkOutcome> {
    const act = checkActing(by, 'discard')
    return this.#bulk(selection, options, {
      told: (letter) => this.#tell('discard', letter, act),
      against: () => null,
      act: (ids) => this.#letters.discard(ids, act),
    })
  }

  /** Makes a discarded job the dead letter that it was. */
  async undo(id: string, by: Acting): Promise<void> {
    const act = checkActing(by, 'undo')
    const [isUndone] = await this.#letters.undiscard([id], act)
    const letter = await this.#find(id)
    if (isUndone === true) {
      this.#tell('undo', letter, act)
      return
    }
    throw new MillraceError('ERR_STATE_TRANSITION', `job ${id} is not discarded, so there is nothing to undo`)
  }

  /**
   * Deletes letters, discarded ones by their ids too. Needs a reason. A critical type is left alone unless it was
   * discarded first or this is forced.
   */
  async purge(selection: Selection, by: Acting, options: BulkOptions = {}): Promise<BulkOutcome> {
    const act = checkActing(by, 'purge')
    return this.#bulk(selection, options, {
      told: (letter) => this.#tell('purge', letter, act),
      against: ({ job }) => (job.ended === null && this.#critical.has(job.type) ? 'critical' : null),
      act: (ids) => this.#letters.remove(ids, act),
    })
  }

  /** What was done at the desk, newest first; a hundred entries unless told. */
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
      /** Of each letter that was really acted on. */
      told(letter: Letter): void
    },
  ): Promise<BulkOutcome> {
    const pages = (pageMax: number) => pagesOf(this.#letters, selection, pageMax)
    const act = async (letters: readonly Letter[]): Promise<readonly boolean[]> => {
      const answers = await rules.act(letters.map(({ job }) => job.id))
      for (const [index, letter] of letters.entries()) if (answers[index] === true) rules.told(letter)
      return answers
    }
    const total = await this.#total(selection)
    return runBulk({ clock: this.#clock, selection, total, pages, ...rules, act }, options)
  }

  #tell(action: DeskAction, { job }: Letter, { who }: By): void {
    this.#events.emit('desk.acted', { action, id: job.id, type: job.type, who })
  }

  /** Counting by fingerprint or time would mean to read everything twice. */
  async #total(selection: Selection): Promise<number | null> {
    if ('ids' in selection) return new Set(selection.ids).size
    const { type, fingerprint, sinceMs, beforeMs, limit = Number.POSITIVE_INFINITY } = selection
    // As a dry run or a group answers it: the limit is the count.
    if (beforeMs !== undefined && Number.isFinite(limit)) return limit
    if (fingerprint !== undefined || sinceMs !== undefined || beforeMs !== undefined) return null
    const counts = Object.entries(await this.#engine.counts())
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
      `Dead letter not found: ${id}; it is none, was replayed or was removed: look at the job and at the audit`,
    )
  }

  /** Without a definition the text is only checked to be JSON, and keeps its version. */
  async #edit({ job }: Letter, payload: unknown): Promise<PayloadEdit> {
    const definition = this.#jobs.get(job.type)
    const text = await encodePayload(definition ?? defineJob({ type: job.type }), payload, this.#bytesMax)
    return { payload: text, payloadVersion: definition?.version ?? job.payloadVersion }
  }
}

function notReplayable({ job }: Letter): MillraceError {
  const why =
    job.ended === null
      ? 'another replayed it first, a live job has its key, or a newer version of its latest key has come'
      : `it is ${job.ended}; undo that first`
  return new MillraceError('ERR_STATE_TRANSITION', `job ${job.id} cannot be replayed: ${why}`)
}

/** An act that takes work away must say why; who did it must be known for every act. */
function checkActing(by: Acting, action: DeskAction): By {
  refuseUnknown(by, { who: true, reason: true }, action)
  const { who, reason = '' } = by
  if (who.trim() === '') throw new OptionError(`'who' is empty; say who does this`)
  const text = reason.trim()
  if (text === '' && (action === 'discard' || action === 'purge')) {
    throw new OptionError(`'reason' is missing; say why this is ${action === 'discard' ? 'discarded' : 'purged'}`)
  }
  return { who: who.trim(), reason: text === '' ? action : text }
}

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIST_LIMIT_MAX) return limit
  throw new OptionError(`'limit' is ${limit}; give a whole number from 1 to ${LIST_LIMIT_MAX}`)
}
