import {
  type AuditEntry,
  type AuditFilter,
  type AuditNote,
  auditView,
  DESK_ACTIONS,
  ERASED,
  matchesAudit,
  OPERATOR_ACTIONS,
} from '../../engine/dead-letters.ts'
import type { RedisDatabase } from './database.ts'
import { publicId, typeOf } from './keys.ts'
import { listOf, parse, toPlace, toView } from './rows.ts'
import { compose } from './scripts.ts'

/** Entries read at once. */
const STEP = 200

/** The newest first. Entries are numbered by their place in the list, which only grows. */
export async function readAudit(database: RedisDatabase, filter: AuditFilter): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = []
  const count = Number(await database.call('llen', database.keys.audit))
  let to = Math.min(count, (filter.before ?? count + 1) - 1)
  while (to > 0 && entries.length < filter.limit) {
    const from = Math.max(0, to - STEP)
    const texts = listOf(await database.call('lrange', database.keys.audit, from, to - 1))
    for (const [index, text] of [...texts.entries()].reverse()) {
      const entry = readEntry(text, from + index + 1)
      if (entry !== null && matchesAudit(entry, filter) && entries.length < filter.limit) entries.push(entry)
    }
    to = from
  }
  return entries
}

/** ARGV: time, the entry as JSON. Lua would not keep its empty arrays, so the time is put in front of its text. */
const noteScript = compose(
  'note',
  {},
  `call('RPUSH', own('audit'), '{"at":' .. string.format('%.0f', now) .. ',' .. string.sub(ARGV[2], 2))`,
)

/** What the audit says about one job. */
interface About {
  /** Null where it says nothing. */
  type: string | null
  /** Places in the list, from 0, and the texts that take the place of entries that still say something of the job. */
  readonly rewritten: [at: number, text: string][]
}

/** What the audit says about some jobs. The list only grows, so each entry is read once. */
export class AuditAbout {
  readonly #database: RedisDatabase
  readonly #jobs: ReadonlyMap<string, About>
  #length = 0

  constructor(database: RedisDatabase, ids: Iterable<string>) {
    this.#database = database
    this.#jobs = new Map([...ids].map((id) => [id, { type: null, rewritten: [] }]))
  }

  /** How long the list is now. */
  async read(): Promise<number> {
    const { keys } = this.#database
    const length = Number(await this.#database.call('llen', keys.audit))
    while (this.#length < length) {
      const from = this.#length
      const to = Math.min(from + STEP, length)
      const texts = listOf(await this.#database.call('lrange', keys.audit, from, to - 1))
      for (const [index, text] of texts.entries()) this.#add(text, from + index)
      this.#length = to
    }
    return length
  }

  #add(text: unknown, at: number): void {
    const entry = readEntry(text, at + 1)
    const about = entry === null ? undefined : this.#jobs.get(entry.jobId)
    if (entry === null || about === undefined) return
    about.type = entry.type
    const erased = withoutFacts(text, entry)
    if (erased !== null) about.rewritten.push([at, erased])
    // The erasing that wrote it has rewritten those before it.
    if (entry.action === 'erase') about.rewritten.length = 0
  }

  of(id: string): Readonly<About> {
    return this.#jobs.get(id) ?? { type: null, rewritten: [] }
  }
}

/** Null if it says nothing of the job. */
function withoutFacts(text: unknown, { action, before, after }: AuditEntry): string | null {
  if (action === 'erase' || before.erased === true) return null
  const { edit: _, ...stored } = { edit: null, ...recordOf(parse(String(text))) }
  return JSON.stringify({ ...stored, before: ERASED, ...(after !== null && { after: ERASED }) })
}

export async function writeNote(database: RedisDatabase, note: AuditNote): Promise<void> {
  const { who, reason, action, jobId, type, subject, before, after } = note
  const text = JSON.stringify({ who, reason, action, about: { jobId, type, subject }, before, after })
  await database.run(noteScript(), [text])
}

/** Null for what another program has put into the list. */
function readEntry(text: unknown, seq: number): AuditEntry | null {
  const stored = recordOf(parse(typeof text === 'string' ? text : undefined))
  return readNote(stored, seq) ?? readAct(stored, seq)
}

const NOTE_ACTIONS = [...OPERATOR_ACTIONS, 'erase'] as const

function readNote(stored: Stored, seq: number): AuditEntry | null {
  const { at, who, reason, before, after } = stored
  const action = NOTE_ACTIONS.find((known) => known === stored.action)
  if (action === undefined) return null
  const { jobId, type, subject } = recordOf(stored.about)
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
  return {
    ...{ seq, atMs: Number(at), who: String(who), reason: String(reason), action },
    ...{ jobId: textOf(jobId), type: textOf(type), subject: typeof subject === 'string' ? subject : null },
    before: recordOf(before),
    after: typeof after === 'object' && after !== null ? recordOf(after) : null,
  }
}

/** What was done at the desk: written by the script that did it, with the job as it was stored. */
function readAct(stored: Stored, seq: number): AuditEntry | null {
  const { at, who, reason, queue, id, before, after, edit } = stored
  const action = DESK_ACTIONS.find((known) => known === stored.action)
  if (action === undefined || typeof queue !== 'string' || typeof id !== 'string') return null
  const type = typeOf(queue)
  const viewOf = (snapshot: unknown) => readSnapshot({ queue, type, bullId: id }, snapshot)
  const left = after === undefined ? null : viewOf(after)
  return {
    seq,
    atMs: Number(at),
    who: String(who),
    reason: String(reason),
    action,
    jobId: publicId(type, id),
    type,
    subject: null,
    before: viewOf(before) ?? {},
    after: left === null || typeof edit !== 'string' ? left : { ...left, edit: parse(edit) },
  }
}

/** The fields of a hash as the script noted them. Entries of earlier versions have the payload where a replay changed it. */
function readSnapshot(
  job: { readonly queue: string; readonly type: string; readonly bullId: string },
  snapshot: unknown,
): Readonly<Record<string, unknown>> | null {
  const { place, fields, erased } = recordOf(snapshot)
  if (erased === true) return ERASED
  const texts = Object.entries(recordOf(fields)).map(([name, value]): [string, string] => [name, String(value)])
  const row = { ...job, place: toPlace(place), fields: new Map([['data', ''], ...texts]), lockUntilMs: null }
  const view = toView(row)
  if (view === null) return null
  return { ...auditView(view), ...(view.payload !== '' && { payload: view.payload }) }
}

type Stored = Readonly<Record<string, unknown>>

function recordOf(value: unknown): Stored {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
