/** The pipeline, assembled: its database, its three jobs, and what runs beside them. */
import { closeSync, mkdirSync, openSync } from 'node:fs'
import path from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { type Mill, open } from '../../src/client/mill.ts'
import { fileOf } from '../../src/engines/sqlite/database.ts'
import { toOpenError } from '../../src/engines/sqlite/faults.ts'
import { defineJob, type Log } from '../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { type Duty, startDuties } from '../../src/keeper/side-duties.ts'
import { silentLog } from '../../src/observe/log.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import type { WorkerOptions } from '../../src/worker/options.ts'
import type { Worker } from '../../src/worker/worker.ts'
import { approvedFetch } from '../language-models/approved-fetch.ts'
import { type ConversationsConfig, checkConfig } from './config.ts'
import { type HookResult, hookHandler } from './hook/handler.ts'
import type { HookInput } from './hook/input.ts'
import { type TakenIn, takeInSpool } from './hook/intake.ts'
import { CONVERSATION_JOBS, EXTRACT_LEARNING, MINE_UPLOAD, SANITIZE_AI_VALIDATION } from './jobs/contract.ts'
import { extractLearning } from './jobs/extract.ts'
import { extractPayload, sanitizePayload, uploadPayload } from './jobs/payloads.ts'
import { sanitizeAiValidation } from './jobs/validate.ts'
import { modelFrom } from './models/config.ts'
import type { Model } from './models/model.ts'
import type { PipelineParts } from './options.ts'
import { BACKOFF } from './queue/backoff.ts'
import { createSanitizer } from './sanitize/sanitize.ts'
import { openDatabase } from './store/database.ts'
import { CONVERSATIONS_ENGINE } from './store/engine-default.ts'
import { type Forgotten, forgetConversation, retainConversations } from './store/forget.ts'
import { LearningRepository } from './store/learnings.ts'
import { conversationsFile } from './store/location.ts'
import { readSecret } from './store/secret.ts'
import { mineUpload } from './upload/mine-upload.ts'

/** The three jobs of the pipeline: what `mill.work` takes. */
export function conversationJobs(parts: PipelineParts) {
  return [
    defineJob({
      type: SANITIZE_AI_VALIDATION,
      payload: sanitizePayload,
      ...retriesOf(SANITIZE_AI_VALIDATION),
      // Usually under 2 s; a message of a megabyte takes the local model half a minute.
      timeout: '5m',
      run: sanitizeAiValidation(parts),
    }),
    defineJob({
      type: EXTRACT_LEARNING,
      payload: extractPayload,
      ...retriesOf(EXTRACT_LEARNING),
      timeout: '5m',
      run: extractLearning(parts),
    }),
    defineJob({
      type: MINE_UPLOAD,
      payload: uploadPayload,
      ...retriesOf(MINE_UPLOAD),
      // It does not wait for confirmations: it is given back and looks again.
      timeout: '2m',
      run: mineUpload(parts),
    }),
  ] as const
}

function retriesOf(type: keyof typeof CONVERSATION_JOBS) {
  const { priority, attempts } = CONVERSATION_JOBS[type]
  return { priority, attempts, backoff: BACKOFF }
}

export interface PipelineOptions extends Omit<ConversationsConfig, 'model'> {
  /** A `sqlite:` URL; default: `sqlite:~/.millrace/conversations.db`. */
  readonly engine?: string
  /** A model, or the part `model` of a configuration; default: the local model, which needs no network. */
  readonly model?: Model | ConversationsConfig['model']
  readonly clock?: Clock
  /** Default: nothing is logged. */
  readonly log?: Log
  /** Where the hook keeps what it cannot put beside the database; default: the home folder of the user. */
  readonly home?: string
}

const PIPELINE_NAMES: OptionNames<PipelineOptions> = {
  ...{ engine: true, model: true, extract: true, upload: true, rules: true, retentionDays: true },
  ...{ clock: true, log: true, home: true },
}

/** Everything but a mill, for a program that has its own. */
export interface Pipeline {
  /** Open a mill on this. */
  readonly engine: string | DatabaseSync
  readonly jobs: ReturnType<typeof conversationJobs>
  readonly parts: PipelineParts
  readonly database: DatabaseSync
  readonly learnings: LearningRepository
  /** Taking in the spool and, with `retentionDays`, forgetting by age. Run them beside the jobs. */
  readonly duties: readonly Duty[]
  /** Records one event of a coding assistant, as `millrace-hook` does. */
  hookHandler(input: HookInput): HookResult
  takeInSpool(): Promise<TakenIn>
  /** Removes everything about a conversation. Returns what was removed, and what was published and cannot be. */
  forget(conversationId: string): Promise<Forgotten>
  retain(limit: { readonly olderThanDays: number }): Promise<Forgotten>
  /** Closes the database, once the mill is closed. */
  close(): void
}

const EXTRACT_DEFAULT = { minConfidence: 0.7, categories: [] }

/** Opens the database and assembles the pipeline. Unknown options, and what a setting cannot be, are refused. */
export function openPipeline(options: PipelineOptions = {}): Pipeline {
  refuseUnknown(options, PIPELINE_NAMES, 'openPipeline')
  const { engine = CONVERSATIONS_ENGINE, model: given, clock = systemClock, log = silentLog, home } = options
  const { extract, upload = null, rules, retentionDays } = checkConfig(settingsOf(options), 'the configuration')
  // First what can be refused: a wrong setting creates no file.
  const sanitize = createSanitizer(rules === undefined ? {} : { rules })
  const model = isModel(given) ? given : modelFrom(given, { clock })
  const endpoints = [model.endpoint, upload?.ipfsEndpoint, upload?.rpcUrl].filter((one) => typeof one === 'string')
  const fetch = approvedFetch({ endpoints, log })
  const { database: file } = conversationsFile(engine)
  if (engine === CONVERSATIONS_ENGINE) mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  const database = opened(file, clock)
  const secret = secretOf(database)
  const parts: PipelineParts = {
    ...{ database, secret, clock, sanitize, model, fetch, upload },
    extract: { ...EXTRACT_DEFAULT, ...extract },
  }
  const stored = { database, clock, log, ...(home !== undefined && { home }) }
  const takeIn = (): Promise<TakenIn> => takeInSpool(stored)
  const retain: Pipeline['retain'] = (limit) => retainConversations(stored, limit)
  return {
    // A second connection to a database in memory would be another database.
    engine: file === ':memory:' ? database : engine,
    jobs: conversationJobs(parts),
    ...{ parts, database, retain, takeInSpool: takeIn, learnings: new LearningRepository(database) },
    duties: dutiesOf({ takeIn, retain, log, retentionDays }),
    hookHandler: (input) => hookHandler(input, { database, sanitize, secret, clock }),
    forget: (conversationId) => forgetConversation(stored, conversationId),
    close: () => database.close(),
  }
}

function opened(file: string, clock: Clock): DatabaseSync {
  if (file !== ':memory:') createForOwner(file)
  try {
    return openDatabase(file, { nowMs: clock.nowMs() })
  } catch (error) {
    throw toOpenError(error, 'opening', file)
  }
}

/** As the hook creates it: readable by its owner only. SQLite gives the write-ahead log the same mode. */
function createForOwner(file: string): void {
  try {
    closeSync(openSync(file, 'ax', 0o600))
  } catch {
    // It is there already, or opening it fails next, with an error that says more.
  }
}

/** Leaves nothing open where it throws. */
function secretOf(database: DatabaseSync): Uint8Array {
  try {
    return readSecret(fileOf(database))
  } catch (error) {
    database.close()
    throw error
  }
}

function settingsOf({ extract, upload, rules, retentionDays }: PipelineOptions): object {
  return { extract, upload, rules, retentionDays }
}

function isModel(given: PipelineOptions['model']): given is Model {
  return given !== undefined && 'findPersonalData' in given
}

interface DutyParts {
  readonly takeIn: Pipeline['takeInSpool']
  readonly retain: Pipeline['retain']
  readonly log: Log
  readonly retentionDays: number | undefined
}

function dutiesOf({ takeIn, retain, log, retentionDays }: DutyParts): readonly Duty[] {
  const spool: Duty = {
    name: 'spool',
    // Until it is empty, the hook puts every further message there too.
    every: '5s',
    async run() {
      const { takenIn, known, unreadable } = await takeIn()
      if (takenIn + known > 0) log.info('Spooled messages taken in', { count: takenIn, known })
      if (unreadable.length > 0) log.warn('Spool files cannot be read and are kept', { files: unreadable })
    },
  }
  if (retentionDays === undefined) return [spool]
  const retention: Duty = {
    name: 'retention',
    every: '1d',
    run: async () => void (await retain({ olderThanDays: retentionDays })),
  }
  return [spool, retention]
}

export interface Conversations extends Omit<Pipeline, 'engine' | 'close'> {
  readonly mill: Mill
  /** Starts a worker of the three jobs, and the duties. Both run until `close`. */
  work(options?: WorkerOptions): Promise<Worker>
  /** Stops workers and duties, and closes the mill and the database. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Opens the whole pipeline in this process. Nothing is uploaded without `upload`, and without `model` nothing leaves the
 * machine.
 *
 * @example
 * const conversations = await openConversations({ engine: 'sqlite:./conversations.db' })
 * await conversations.work()
 */
export async function openConversations(options: PipelineOptions = {}): Promise<Conversations> {
  const { engine, close: closeDatabase, ...pipeline } = openPipeline(options)
  const { clock = systemClock, log = silentLog } = options
  const mill = await open(engine, { jobs: pipeline.jobs, clock, log }).catch((error: unknown) => {
    closeDatabase()
    throw error
  })
  let stopDuties: (() => Promise<void>) | null = null
  let closing: Promise<void> | null = null
  const closeAll = async (): Promise<void> => {
    // The last first, also where one fails.
    await using ends = new AsyncDisposableStack()
    ends.defer(closeDatabase)
    ends.use(mill)
    ends.defer(() => stopDuties?.())
  }
  const close = (): Promise<void> => {
    closing ??= closeAll()
    return closing
  }
  const work = async (workerOptions?: WorkerOptions): Promise<Worker> => {
    const worker = await mill.work(pipeline.jobs, workerOptions)
    stopDuties ??= startDuties(pipeline.duties, { clock, log })
    return worker
  }
  return { ...pipeline, mill, work, close, [Symbol.asyncDispose]: close }
}
