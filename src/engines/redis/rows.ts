import type { ErrorRecord, JobView, StoredJob, StoredOptions, Tenant } from '../../job/job.ts'
import { ATTEMPTS_DEFAULT } from '../../job/options.ts'
import { readPredecessors } from '../../job/predecessors.ts'
import { ENDS, type Ended, type StoredState, shownState } from '../../job/states.ts'
import { tagsOf } from '../../job/tags.ts'
import { publicId, typeOf } from './keys.ts'
import { HISTORY } from './lua/history.ts'
import { LINKS } from './lua/links.ts'
import { REMOVAL, REMOVAL_BULL } from './lua/removal.ts'
import { compose, type Script } from './scripts.ts'

/** A job's hash. Another program may have written it: every field may be missing or hold anything. */
export type Fields = ReadonlyMap<string, string>

/** From the answer of HGETALL: names and values in turn. */
export function toFields(flat: unknown): Fields {
  const fields = new Map<string, string>()
  if (!Array.isArray(flat)) return fields
  for (let at = 0; at + 1 < flat.length; at += 2) fields.set(String(flat[at]), String(flat[at + 1]))
  return fields
}

/** What Millrace keeps in the field `mr`, as it was found there. */
interface Extra {
  readonly v?: unknown
  readonly key?: unknown
  readonly latest?: unknown
  readonly tenant?: unknown
  readonly options?: unknown
}

/** Null when the hash is not a job: it was deleted, or fields were written after it was gone. */
export function readStored(type: string, bullId: string, fields: Fields): StoredJob | null {
  const payload = fields.get('data')
  const name = fields.get('name')
  if (payload === undefined || name === undefined) return null
  const opts = parseRecord(fields.get('opts'))
  const extra: Extra = parseRecord(fields.get('mr'))
  const createdAtMs = toTime(toNumber(fields.get('timestamp')) ?? 0)
  return {
    id: publicId(type, bullId),
    type,
    payload,
    payloadVersion: toWhole(extra.v) ?? 1,
    priority: toPriority(fields.get('priority') ?? opts.priority),
    attempts: toWhole(opts.attempts) || ATTEMPTS_DEFAULT,
    createdAtMs,
    runAtMs: toTime(toNumber(fields.get('mrRun')) ?? createdAtMs + (toWhole(opts.delay) ?? 0)),
    key: toText(extra.key),
    latestKey: toText(toRecord(extra.latest)?.key),
    tenant: readTenant(extra.tenant),
    options: readOptions(extra.options, name === type ? null : { name }),
    after: readPredecessors(parse(fields.get('mrAfter'))),
  }
}

/** Past starts: failed ones, and those whose holder another program found dead. */
export function startsOf(fields: Fields): number {
  return (toWhole(fields.get('atm')) ?? 0) + (toWhole(fields.get('stc')) ?? 0)
}

/** The number of the current start. */
export function attemptOf(fields: Fields): number {
  return startsOf(fields) + 1
}

/** Where a job is: BullMQ's set, our own set `ended`, or `unknown` when it is in none. */
export type Place =
  | 'wait'
  | 'paused'
  | 'prioritized'
  | 'delayed'
  | 'waiting-children'
  | 'active'
  | 'completed'
  | 'failed'
  | 'ended'
  | 'unknown'

/** A job as scripts return it. */
export interface Row {
  readonly queue: string
  readonly type: string
  readonly bullId: string
  readonly place: Place
  readonly fields: Fields
  /** When the lock of an active job expires; null without one. */
  readonly lockUntilMs: number | null
}

export function toState(place: Place): StoredState {
  switch (place) {
    case 'wait':
    case 'paused':
    case 'prioritized':
    case 'delayed':
    case 'waiting-children':
      return 'queued'
    case 'active':
      return 'in_progress'
    case 'completed':
      return 'completed'
    case 'failed':
    case 'ended':
      return 'dead_letter'
    case 'unknown':
      return 'failed'
    default:
      place satisfies never
      return 'failed'
  }
}

/** Null when the hash is not a job. */
export function toView(row: Row): JobView | null {
  const { fields, place } = row
  const stored = readStored(row.type, row.bullId, fields)
  if (stored === null) return null
  const [isActive, isCompleted, isEnded] = [place === 'active', place === 'completed', place === 'ended']
  const isOver = isCompleted || isEnded || place === 'failed'
  const startedAtMs = isActive || isOver ? timeOf(fields, 'processedOn') : null
  const finishedAtMs = timeOf(fields, 'finishedOn')
  const changedAtMs = timeOf(fields, 'mrAt')
  return {
    ...stored,
    state: shownState(toState(place), isEnded ? readEnded(fields.get('mrEnded')) : null),
    attempt: isActive ? attemptOf(fields) : startsOf(fields),
    tags: tagsOf(stored.options),
    replays: toWhole(fields.get('mrReplays')) ?? 0,
    progress: parse(fields.get('progress')),
    result: isCompleted ? parse(fields.get('returnvalue')) : null,
    error: isCompleted ? null : readError(fields, place === 'failed'),
    leaseOwner: isActive ? (fields.get('pb') ?? null) : null,
    leaseUntilMs: isActive ? row.lockUntilMs : null,
    updatedAtMs: Math.max(stored.createdAtMs, startedAtMs ?? 0, (isOver && finishedAtMs) || 0, changedAtMs ?? 0),
    startedAtMs,
    completedAtMs: isOver ? ((isEnded ? changedAtMs : null) ?? finishedAtMs) : null,
    durationMs: isCompleted ? durationOf(fields) : null,
  }
}

function durationOf(fields: Fields): number | null {
  const tookMs = toNumber(fields.get('mrTook'))
  if (tookMs !== null) return tookMs
  const [from, to] = [timeOf(fields, 'processedOn'), timeOf(fields, 'finishedOn')]
  return from === null || to === null ? null : to - from
}

function readEnded(text: string | undefined): Ended | null {
  return ENDS.find((ended) => ended === text) ?? null
}

/** BullMQ's workers store a message and a list of stacks. `isCertain`: it is dead, so there was an error. */
function readError(fields: Fields, isCertain: boolean): ErrorRecord | null {
  const record = toRecord(parse(fields.get('mrError')))
  if (record !== null) {
    return {
      name: toText(record.name) ?? 'Error',
      code: toText(record.code),
      message: toText(record.message) ?? '',
      stack: toText(record.stack),
    }
  }
  const message = fields.get('failedReason')
  if (message === undefined && !isCertain) return null
  const stacks = parse(fields.get('stacktrace'))
  const stack = Array.isArray(stacks) ? toText(stacks.at(-1)) : null
  return { name: 'Error', code: null, message: message ?? '', stack }
}

/** BullMQ's 0 goes before every priority, and it counts to two million. */
function toPriority(value: unknown): number {
  return Math.min(10, Math.max(1, toWhole(value) ?? 1))
}

function readTenant(value: unknown): Tenant | null {
  const record = toRecord(value)
  return record !== null && isTenant(record) ? record : null
}

function isTenant(record: object): record is Tenant {
  return 'orgId' in record && typeof record.orgId === 'string'
}

/** BullMQ's name of the job is the one that its programs see; ours have the type there. */
function readOptions(value: unknown, named: Pick<StoredOptions, 'name'> | null): StoredOptions | null {
  const options = toRecord(value)
  return named === null ? options : { ...options, ...named }
}

type JsonRecord = Readonly<Record<string, unknown>>

function toRecord(value: unknown): JsonRecord | null {
  return isRecord(value) ? value : null
}

function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const NOTHING: JsonRecord = Object.freeze({})

function parseRecord(text: string | undefined): JsonRecord {
  return toRecord(parse(text)) ?? NOTHING
}

/** Null for invalid JSON. */
export function parse(text: string | undefined): unknown {
  if (text === undefined) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function toText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Numbers are texts in a hash, and may be texts in JSON that another program wrote. */
function toNumber(value: unknown): number | null {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : null
}

function toWhole(value: unknown): number | null {
  const number = toNumber(value)
  return number === null ? null : Math.max(0, Math.trunc(number))
}

/** What a Date can hold at most. */
const TIME_MAX_MS = 8.64e15

function toTime(ms: number): number {
  return Math.max(-TIME_MAX_MS, Math.min(TIME_MAX_MS, ms))
}

export function timeOf(fields: Fields, name: string): number | null {
  const ms = toNumber(fields.get(name))
  return ms === null ? null : toTime(ms)
}

const PLACES: readonly Place[] = [
  'wait',
  'paused',
  'prioritized',
  'delayed',
  'waiting-children',
  'active',
  'completed',
  'failed',
  'ended',
]

export function toPlace(word: unknown): Place {
  return PLACES.find((place) => place === word) ?? 'unknown'
}

/** A script's answer for one job; null if it does not exist. */
export function toRow(answer: unknown): Row | null {
  const [queue, bullId, place, runsOut, flat] = listOf(answer)
  if (typeof queue !== 'string' || typeof bullId !== 'string') return null
  return {
    queue,
    type: typeOf(queue),
    bullId,
    place: toPlace(place),
    fields: toFields(flat),
    lockUntilMs: runsOut === '' || runsOut === undefined ? null : Number(runsOut),
  }
}

export function toRows(answer: unknown): readonly Row[] {
  return listOf(answer).flatMap((each) => toRow(each) ?? [])
}

export function listOf(answer: unknown): readonly unknown[] {
  return Array.isArray(answer) ? answer : []
}

/**
 * `rowOf(q, id)`: a job as the answer has it: queue, BullMQ's id, place, when its lock runs out ('' without one) and the
 * fields of its hash.
 */
const ROWS = `
local function rowOf(q, id)
  local key, place, runsOut = q.base .. id, placeOf(q, id), ''
  if place == 'active' then
    local left = call('PTTL', key .. ':lock')
    runsOut = left >= 0 and string.format('%.0f', now + left) or ''
  end
  return { q.name, id, place, runsOut, call('HGETALL', key) }
end
`

/** A script that reads jobs, with `find`, `placeOf` and `rowOf`. */
export function composeRead(name: string, lua: string): () => Script {
  return compose(name, REMOVAL_BULL, HISTORY, LINKS, REMOVAL, ROWS, lua)
}
