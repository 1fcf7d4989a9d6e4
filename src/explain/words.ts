/** The sentences. Times are given as they are stored, with how far off they are in brackets. */
import type { ErrorRecord, Predecessors } from '../job/job.ts'
import { formatDuration } from '../time/duration.ts'
import { toIso } from '../time/iso.ts'
import type { ExplainedJob } from './explanation.ts'
import type { Note, PutOff, Reason } from './reasons.ts'

/** More names would hide the sentence; all that are known stand in the explanation's list. */
const NAMED_MAX = 3

export function sayReason(reason: Reason, nowMs: number): string {
  const when = (ms: number): string => timeText(ms, nowMs)
  switch (reason.kind) {
    case 'completed':
    case 'dead':
    case 'cancelled':
    case 'discarded':
    case 'superseded':
      return sayEnd(reason, when)
    case 'running':
    case 'lease-expired':
      return sayHeld(reason, nowMs, when)
    case 'waits-for-jobs':
      return sayWaits(reason)
    case 'unreadable':
      return sayUnreadable(reason)
    case 'delayed':
      return `It is delayed until ${when(reason.untilMs)}${sayPutOff(reason.putOff)}.`
    case 'older-version-runs':
      return `An older version of its latest key '${reason.latestKey}' runs: ${name(reason.job)}. It starts when that one is settled.`
    case 'paused':
      return `Its type '${reason.pause.type}' is paused: ${reason.pause.who} did so at ${when(reason.pause.sinceMs)}, ${quoted(reason.pause.reason)}. It starts when the type is resumed.`
    case 'limit-reached':
      return `The limit of its type, ${count(reason.max, 'start')} in ${formatDuration(reason.perMs)}, is reached, by ${names(reason.jobs)}. The next start is possible at ${when(reason.untilMs)}.`
    case 'no-worker':
      return sayNoWorker(reason, when)
    case 'slots-busy':
      return `All slots of ${count(reason.workers.length, 'worker')} for its type were taken when last heard (${list(reason.workers)})${reason.jobs.length === 0 ? '' : `, by ${names(reason.jobs)}`}.`
    case 'others-first':
      return `${reason.isLeast ? 'At least ' : ''}${count(reason.count, 'job')} of its type ${reason.count === 1 ? 'comes' : 'come'} first: more urgent, or due earlier.`
    case 'due':
      return sayDue(reason, when)
    case 'unsettled':
      return `It is in none of the states that a job stays in: another program may have moved it. 'millrace doctor' looks for such jobs.`
    case 'engine-down':
      return `The ${reason.engine} engine does not answer: ${sentence(reason.error)} Nothing is started until it does.`
    default:
      reason satisfies never
      return ''
  }
}

function sayUnreadable({ field, value }: Extract<Reason, { kind: 'unreadable' }>): string {
  if (field === 'priority')
    return `Its priority is ${value}, so no worker ever starts it: another program wrote it. Store a whole number from 1 to 10.`
  return `Its due time cannot be read, so no worker ever starts it: another program wrote it. Store it as 2026-11-16T12:00:00.000Z.`
}

type When = (ms: number) => string
type Of<Kind extends Reason['kind']> = Extract<Reason, { readonly kind: Kind }>

function sayEnd(reason: Of<'completed' | 'dead' | 'cancelled' | 'discarded' | 'superseded'>, when: When): string {
  const at = reason.atMs === null ? '' : ` at ${when(reason.atMs)}`
  switch (reason.kind) {
    case 'completed': {
      const by = reason.worker === null ? '' : ` by ${reason.worker}`
      const took = reason.tookMs === null ? '' : `, after ${formatDuration(reason.tookMs)} of work`
      return `It was completed${at}${by}${took}.`
    }
    case 'dead':
      return `It became a dead letter${at}, at attempt ${reason.attempt} of ${reason.attempts}${because(reason.error)}. It runs again when somebody replays it.`
    case 'cancelled':
    case 'discarded': {
      const by = reason.who === null ? '' : ` by ${reason.who}`
      return `It was ${reason.kind}${at}${by}${reason.reason === null ? '' : `, ${quoted(reason.reason)}`}.`
    }
    case 'superseded':
      return `It was superseded${at} by a newer version of its latest key${reason.by === null ? '' : `: ${name(reason.by)}`}.`
    default:
      reason satisfies never
      return ''
  }
}

function sayHeld(reason: Of<'running' | 'lease-expired'>, nowMs: number, when: When): string {
  const worker = reason.worker ?? 'a worker'
  if (reason.kind === 'running') {
    const since = reason.sinceMs === null ? '' : ` since ${when(reason.sinceMs)}`
    const lease = reason.leaseUntilMs === null ? '' : `; its lease holds until ${when(reason.leaseUntilMs)}`
    return `It runs on ${worker}${since}, attempt ${reason.attempt} of ${reason.attempts}${lease}.`
  }
  const ended = reason.atMs === null ? 'has run out' : `ran out at ${when(reason.atMs)}`
  const next = reason.isLast ? 'becomes a dead letter: that was its last attempt' : 'is retried'
  return `The lease of ${worker} on it ${ended}: the worker died, was killed or stalls. ${sayRecovery(reason.takenByMs, nowMs, when)}; then it ${next}.`
}

function sayRecovery(takenByMs: number | null, nowMs: number, when: When): string {
  if (takenByMs === null) return 'A keeper takes it over'
  if (takenByMs > nowMs) return `A keeper takes it over by ${when(takenByMs)}`
  return `No keeper has taken it over, so none seems to run: start a worker, or 'millrace reap' takes it over`
}

const IF_DEAD: Readonly<Record<Predecessors['ifDead'], string>> = {
  wait: 'If one of them is dead, it waits until that one is replayed and completes.',
  run: 'If one of them dies, it runs all the same.',
  die: 'If one of them dies, it dies too.',
}

function sayWaits({ jobs, of, notLookedUp, ifDead }: Of<'waits-for-jobs'>): string {
  const least = notLookedUp === 0 ? '' : 'at least '
  if (jobs.length > 0)
    return `It waits for ${least}${jobs.length} of ${count(of, 'job')}: ${names(jobs)}. ${IF_DEAD[ifDead]}`
  return `It comes after ${count(of, 'job')}. The first ${of - notLookedUp} hold it back no longer; it may wait for one of the others. ${IF_DEAD[ifDead]}`
}

/** Why a worker gave a job back without blaming it. */
const RELEASED: Readonly<Record<string, string>> = {
  offline: 'its handler was offline',
  'payload-version': 'its payload is newer than the worker that had it',
  predecessors: 'a job that it comes after is under way again',
}

function sayPutOff(putOff: PutOff): string {
  switch (putOff.by) {
    case 'enqueue':
      return ', as it was enqueued'
    case 'retry':
      return `, its backoff after attempt ${putOff.attempt} of ${putOff.attempts}${because(putOff.error)}`
    case 'release':
      return `: it was given back, ${RELEASED[putOff.reason] ?? `for '${putOff.reason}'`}`
    default:
      putOff satisfies never
      return ''
  }
}

function sayNoWorker({ type, stopping, missing }: Of<'no-worker'>, when: When): string {
  const gone = missing.slice(0, NAMED_MAX).map(({ worker, seenAtMs }) => `${worker}, last heard at ${when(seenAtMs)}`)
  const told = [
    `No worker says that it runs '${type}'.`,
    stopping.length === 0 ? '' : ` Stopping: ${list(stopping)}.`,
    gone.length === 0 ? '' : ` Missing: ${gone.join('; ')}.`,
  ]
  return `${told.join('')} Start one that has its handler.`
}

function sayDue({ type, sinceMs, workers }: Of<'due'>, when: When): string {
  if (workers === null)
    return `It is due since ${when(sinceMs)} and waits for a worker of '${type}'; who works is not known here.`
  return `It is due since ${when(sinceMs)} and nothing that is known holds it back: a worker of '${type}' takes it next.`
}

export function sayNote(note: Note, nowMs: number): string {
  const when = (ms: number): string => timeText(ms, nowMs)
  switch (note.kind) {
    case 'will-die':
      return `When its turn comes it dies: ${sentence(note.error)}`
    case 'paused-goes-on':
      return `Its type was paused by ${note.pause.who} at ${when(note.pause.sinceMs)}; what runs goes on to its end.`
    case 'holder-silent':
      return `${note.worker} went without a goodbye: last heard at ${when(note.seenAtMs)}.`
    case 'holder-stopping':
      return `${note.worker} is stopping since ${when(note.sinceMs)}.`
    case 'quiet-workers':
      return `${list(note.workers)} ended no job for ${formatDuration(note.forMs)} and may be stuck.`
    case 'maybe-limited':
      return `${count(note.starts, 'job')} of its type started in the last ${formatDuration(note.perMs)}; if its definition has a limit, that may hold it back.`
    default:
      note satisfies never
      return ''
  }
}

function timeText(ms: number, nowMs: number): string {
  const far = ms > nowMs ? `in ${formatDuration(ms - nowMs)}` : `${formatDuration(nowMs - ms)} ago`
  return `${toIso(ms)} (${far})`
}

function because(error: ErrorRecord | null): string {
  return error === null ? '' : `, because of ${error.name}: ${error.message.trim().replace(/\.$/, '')}`
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

function quoted(text: string): string {
  return `"${text}"`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function name({ id, type, state }: ExplainedJob): string {
  return type === '' ? `${id} (${state})` : `'${type}' ${id} (${state})`
}

function names(jobs: readonly ExplainedJob[]): string {
  return list(jobs.map(name))
}

function list(items: readonly string[]): string {
  const shown = items.slice(0, NAMED_MAX).join(', ')
  return items.length > NAMED_MAX ? `${shown} and ${items.length - NAMED_MAX} more` : shown
}
