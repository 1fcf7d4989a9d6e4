/** How a partition's progress is written into the metadata of its commit, of which Kafka keeps 4096 bytes. */
import { cut } from '../../job/error-record.ts'
import type { ErrorRecord } from '../../job/job.ts'
import { countOf, inOrder, type OffsetRange, packRanges, unpackRanges } from './offset-ranges.ts'

/** What is known about a record that was started and is not settled. */
export interface RetryState {
  /** Starts so far. */
  readonly starts: number
  /** When it may be started again; 0 for at once. */
  readonly dueMs: number
  readonly firstFailureMs: number | null
  /** It has failed for good, and its dead letter could not be written yet. */
  readonly failure?: ErrorRecord
}

export interface Progress {
  /** Offsets at or above the position that are settled. */
  readonly finished: Iterable<OffsetRange>
  readonly retryStates: Iterable<readonly [number, RetryState]>
  /** The topic that the offsets belong to; null for metadata of earlier versions and other programs. */
  readonly topicId?: string | null
  /**
   * Who says so starts nothing more: of records at or above this offset, every start is told here. Null where it goes on
   * to start some, and where not all starts had room.
   */
  readonly doubtfulBelow?: number | null
}

export const METADATA_BYTES_MAX = 4_096
const VERSION = 'm2'
const NOTHING: Progress = Object.freeze({ finished: [], retryStates: [], topicId: null, doubtfulBelow: null })
/** Begins the entry with the id of the topic. Earlier versions take such an entry for damaged and pass over it. */
const TOPIC_ID = '@'
/** Begins the entry with the end of what is in doubt. Earlier versions pass over it too, and doubt as after a crash. */
const DOUBT = '='
const DOUBT_CHARS_MAX = 16
/** Begins an entry with a failure. Earlier versions pass over it too. */
const FAILURE = '!'
/** Of the failures that could not be buried, as much is kept as fits here; their stacks are not. */
const FAILURES_CHARS_MAX = 1_000
const FAILURE_TEXT_MAX = 200
/** What single starts have at least, however much was finished. */
const STARTED_CHARS_MIN = 300

/**
 * `m2|finished|started|trials`: runs of offsets from the position on, twice, then `offset.starts.due.first` in base 36
 * for what was started twice or waits. Only single starts stand in the second, because most records have just one. The
 * last entry is `@` and the id of the topic: a topic that is deleted and created again has other records at the offsets.
 * Before it, `!offset.` and a failure in base64: without it the next owner would not know why the record died. And, from
 * an owner that starts nothing more, `=` and how far above the position a start may be unknown; mostly `=0`.
 * What does not fit is left out, the least important first, so that a commit is never refused for its metadata.
 */
export function encodeProgress(position: number, progress: Progress): string {
  const retryStates = [...progress.retryStates].filter(
    ([offset, retryState]) => offset >= position && isWorthTelling(retryState),
  )
  const single = retryStates
    .filter(([, retryState]) => isSingle(retryState))
    .map(([offset]): OffsetRange => [offset, offset + 1])
  const several = retryStates.filter(([, retryState]) => !isSingle(retryState))
  const id = progress.topicId ? [TOPIC_ID + progress.topicId] : []
  const failures = listFailures(position, retryStates)
  const room = METADATA_BYTES_MAX - VERSION.length - 4 - DOUBT_CHARS_MAX - [...failures, ...id].join().length
  const listed = listRetryStates(position, several, room / 2)
  const left = room - listed.join().length
  const finished = packRanges(position, inOrder(progress.finished), left - STARTED_CHARS_MIN)
  const started = packRanges(position, inOrder(single), left - finished.length)
  const isAllTold =
    countOf(unpackRanges(position, started)) === single.length &&
    several.filter(([, { starts }]) => starts > 0).length <= listed.length
  const doubt = isAllTold ? listDoubt(position, progress.doubtfulBelow ?? null) : []
  return `${VERSION}|${finished}|${started}|${[...listed, ...failures, ...doubt, ...id].join()}`
}

function listDoubt(position: number, doubtfulBelow: number | null): readonly string[] {
  return doubtfulBelow === null ? [] : [DOUBT + Math.max(0, doubtfulBelow - position).toString(36)]
}

function decodeDoubt(position: number, entries: readonly string[]): number | null {
  const told = entries.find((entry) => entry.startsWith(DOUBT))
  const width = told === undefined ? Number.NaN : Number.parseInt(told.slice(DOUBT.length), 36)
  return Number.isSafeInteger(width) && width >= 0 ? position + width : null
}

/** Metadata of other programs or unknown versions is ignored: then records may repeat. */
export function decodeProgress(position: number, metadata: string | null): Progress {
  const parts = metadata?.split('|') ?? []
  const [version, finished = '', started = '', listed = ''] = parts
  if (version !== VERSION || parts.length !== 4) return NOTHING
  const retryStates = new Map<number, RetryState>()
  const entries = listed.split(',')
  const id = entries.findLast((entry) => entry.startsWith(TOPIC_ID))
  for (const [from, to] of unpackRanges(position, started))
    for (let offset = from; offset < to; offset += 1)
      retryStates.set(offset, { starts: 1, dueMs: 0, firstFailureMs: null })
  for (const entry of entries) {
    const [delta, starts, due, first] = entry.split('.').map((part) => Number.parseInt(part, 36))
    if (delta === undefined || starts === undefined || due === undefined || Number.isNaN(delta)) continue
    const firstFailureMs = first === undefined || Number.isNaN(first) ? null : first
    retryStates.set(position + delta, { starts, dueMs: due, firstFailureMs })
  }
  for (const entry of entries.filter((text) => text.startsWith(FAILURE))) {
    const [delta = '', text = ''] = entry.slice(FAILURE.length).split('.')
    const offset = position + Number.parseInt(delta, 36)
    const failure = decodeFailure(text)
    const known = retryStates.get(offset) ?? { starts: 1, dueMs: 0, firstFailureMs: null }
    if (failure !== null && Number.isSafeInteger(offset)) retryStates.set(offset, { ...known, failure })
  }
  const doubtfulBelow = decodeDoubt(position, entries)
  const topicId = id?.slice(TOPIC_ID.length) ?? null
  return { finished: unpackRanges(position, finished), retryStates, topicId, doubtfulBelow }
}

function isWorthTelling({ starts, dueMs }: RetryState): boolean {
  return starts > 0 || dueMs > 0
}

function listFailures(position: number, retryStates: readonly (readonly [number, RetryState])[]): readonly string[] {
  const entries: string[] = []
  let chars = 0
  for (const [offset, { failure }] of retryStates) {
    if (failure === undefined) continue
    const { name, code, message } = failure
    const told = JSON.stringify([cut(name, FAILURE_TEXT_MAX / 2), code, cut(message, FAILURE_TEXT_MAX)])
    const entry = `${FAILURE}${(offset - position).toString(36)}.${Buffer.from(told).toString('base64url')}`
    chars += entry.length + 1
    if (chars > FAILURES_CHARS_MAX) break
    entries.push(entry)
  }
  return entries
}

function decodeFailure(text: string): ErrorRecord | null {
  try {
    const told: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    const [name, code, message]: unknown[] = Array.isArray(told) ? told : []
    if (typeof name !== 'string' || typeof message !== 'string') return null
    return { name, code: typeof code === 'string' ? code : null, message, stack: null }
  } catch {
    return null
  }
}

function isSingle({ starts, dueMs, firstFailureMs }: RetryState): boolean {
  return starts === 1 && dueMs === 0 && firstFailureMs === null
}

/** Those with the most starts first: forgetting them would let them fail for longest. */
function listRetryStates(
  position: number,
  retryStates: readonly (readonly [number, RetryState])[],
  roomBytes: number,
): readonly string[] {
  const entries: string[] = []
  let bytes = 0
  for (const [offset, retryState] of retryStates.toSorted(([, a], [, b]) => b.starts - a.starts)) {
    const first = retryState.firstFailureMs === null ? '' : retryState.firstFailureMs.toString(36)
    const due = Math.ceil(retryState.dueMs).toString(36)
    const entry = `${(offset - position).toString(36)}.${retryState.starts.toString(36)}.${due}.${first}`
    bytes += entry.length + 1
    if (bytes > roomBytes) break
    entries.push(entry)
  }
  return entries
}
