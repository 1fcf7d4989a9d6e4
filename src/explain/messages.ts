/** The sentences of an explanation. Times are absolute, with the distance from now in brackets. */
import { limitsText } from '../engine/limits.ts'
import type { ErrorRecord, Predecessors } from '../job/job.ts'
import { POSTPONED } from '../job/policy.ts'
import { formatDuration } from '../time/duration.ts'
import { toIso } from '../time/iso.ts'
import type { ExplainedJob, Note, PutOff, Reason } from './explanation.ts'

/** More names would hide the sentence; the explanation lists all. */
const NAMED_MAX = 3

export function reasonText(reason: Reason, nowMs: number): string {
  const when = (ms: number): string => timeText(ms, nowMs)
  switch (reason.kind) {
    case 'completed':
    case 'dead':
    case 'cancelled':
    case 'discarded':
    case 'superseded':
      return endText(reason, when)
    case 'running':
    case 'lease-expired':
      return heldText(reason, nowMs, when)
    case 'waits-for-jobs':
      return waitsText(reason)
    case 'unreadable':
      return unreadableText(reason)
    case 'delayed':
      return `It is delayed until ${when(reason.untilMs)}${putOffText(reason.putOff)}.`
    case 'older-version-runs':
      return `An older version of its latest key '${reason.latestKey}' is running: ${name(reason.job)}. It starts when that one has ended.`
    case 'paused':
      return `Its type '${reason.pause.type}' was paused by ${reason.pause.who} at ${when(reason.pause.sinceMs)}, ${quoted(reason.pause.reason)}. It starts when the type is resumed.`
    case 'limit-reached':
      return `The limit of its type, ${count(reason.max, 'start')} in ${formatDuration(reason.perMs)}, is reached, by ${names(reason.jobs)}. The next start is possible at ${when(reason.untilMs)}.`
    case 'slots-taken':
      return slotsTakenText(reason)
    case 'no-worker':
      return noWorkerText(reason, when)
    case 'slots-busy':
      return `All slots of ${count(reason.workers.length, 'worker')} of its type were taken at their last heartbeat (${list(reason.workers)})${reason.jobs.length === 0 ? '' : `, by ${names(reason.jobs)}`}.`
    case 'others-first':
      return `${reason.isLeast ? 'At least ' : ''}${count(reason.count, 'job')} of its type ${reason.count === 1 ? 'comes' : 'come'} first: more urgent, or due earlier.`
    case 'due':
      return dueText(reason, when)
    case 'unsettled':
      return `Its state is one that no job stays in: another program may have written it. 'millrace doctor' finds such jobs.`
    case 'engine-down':
      return `The ${reason.engine} engine does not answer: ${sentence(reason.error)} Nothing starts until it does.`
    default:
      reason satisfies never
      return ''
  }
}

function unreadableText({ field, value }: Extract<Reason, { kind: 'unreadable' }>): string {
  if (field === 'priority')
    return `Its priority is ${value}, so no worker ever starts it: another program wrote it. Store a whole number from 1 to 10.`
  return `Its due time cannot be read, so no worker ever starts it: another program wrote it. Store it as 2026-11-16T12:00:00.000Z.`
}

type When = (ms: number) => string
type Of<Kind extends Reason['kind']> = Extract<Reason, { readonly kind: Kind }>

function endText(reason: Of<'completed' | 'dead' | 'cancelled' | 'discarded' | 'superseded'>, when: When): string {
  const at = reason.atMs === null ? '' : ` at ${when(reason.atMs)}`
  switch (reason.kind) {
    case 'completed': {
      const by = reason.worker === null ? '' : ` by ${reason.worker}`
      const took = reason.tookMs === null ? '' : `, after ${formatDuration(reason.tookMs)} of work`
      return `It was completed${at}${by}${took}.`
    }
    case 'dead':
      return `It became a dead letter${at}, at attempt ${reason.attempt} of ${reason.attempts}${because(reason.error)}. Replay it to run it again.`
    case 'cancelled':
    case 'discarded': {
      const by = reason.who === null ? '' : ` by ${reason.who}`
      return `It was ${reason.kind}${at}${by}${reason.reason === null ? '' : `, ${quoted(reason.reason)}`}.`
    }
    case 'superseded':
      if (reason.isReplay) return `It became a dead letter${at} and was replayed: the job goes on as a later record.`
      return `It was superseded${at} by a newer version of its latest key${reason.by === null ? '' : `: ${name(reason.by)}`}.`
    default:
      reason satisfies never
      return ''
  }
}

function heldText(reason: Of<'running' | 'lease-expired'>, nowMs: number, when: When): string {
  const worker = reason.worker ?? 'a worker'
  if (reason.kind === 'running') {
    const since = reason.sinceMs === null ? '' : ` since ${when(reason.sinceMs)}`
    const lease = reason.leaseUntilMs === null ? '' : `; its lease holds until ${when(reason.leaseUntilMs)}`
    return `It runs on ${worker}${since}, attempt ${reason.attempt} of ${reason.attempts}${lease}.`
  }
  const ended = reason.atMs === null ? 'has expired' : `expired at ${when(reason.atMs)}`
  const next = reason.isLast ? 'becomes a dead letter: that was its last attempt' : 'is retried'
  return `The lease of ${worker} on it ${ended}: the worker died, was killed or stalls. ${recoveryText(reason.takenByMs, nowMs, when)}; then it ${next}.`
}

function recoveryText(takenByMs: number | null, nowMs: number, when: When): string {
  if (takenByMs === null) return 'A keeper recovers it'
  if (takenByMs > nowMs) return `A keeper recovers it by ${when(takenByMs)}`
  return `No keeper has recovered it, so none seems to run: start a worker, or run 'millrace reap'`
}

const IF_DEAD: Readonly<Record<Predecessors['ifDead'], string>> = {
  wait: 'If one of them is dead, it waits until that one is replayed and completes.',
  run: 'If one of them dies, it runs anyway.',
  die: 'If one of them dies, it dies too.',
}

function waitsText({ jobs, of, notLookedUp, ifDead }: Of<'waits-for-jobs'>): string {
  const least = notLookedUp === 0 ? '' : 'at least '
  if (jobs.length > 0)
    return `It waits for ${least}${jobs.length} of ${count(of, 'job')}: ${names(jobs)}. ${IF_DEAD[ifDead]}`
  return `It comes after ${count(of, 'job')}. The first ${of - notLookedUp} no longer hold it back; it may wait for one of the others. ${IF_DEAD[ifDead]}`
}

function slotsTakenText({ max, tenant, jobs }: Of<'slots-taken'>): string {
  const whose =
    tenant === null ? 'of its type' : tenant === '' ? 'of jobs without a tenant' : `of its tenant '${tenant}'`
  const all =
    max === 1 ? `The only slot ${whose} over all workers is` : `All ${max} slots ${whose} over all workers are`
  return `${all} taken, by ${names(jobs)}. It can start when one of them has ended.`
}

/** Why a worker released a job without counting an attempt. */
const RELEASED: Readonly<Record<string, string>> = {
  offline: 'its handler was offline',
  'payload-version': 'its payload is newer than the worker that had it',
  predecessors: 'a job that it waits for is running again',
}

function putOffText(putOff: PutOff): string {
  switch (putOff.by) {
    case 'enqueue':
      return ', as enqueued'
    case 'retry':
      return `, its backoff after attempt ${putOff.attempt} of ${putOff.attempts}${because(putOff.error)}`
    case 'release':
      return releasedText(putOff.reason)
    default:
      putOff satisfies never
      return ''
  }
}

function releasedText(reason: string): string {
  if (!reason.startsWith(POSTPONED)) return `: it was released, ${RELEASED[reason] ?? `for '${reason}'`}`
  return `, postponed by its handler: ${reason.slice(POSTPONED.length).trim().replace(/\.$/, '')}`
}

function noWorkerText({ type, stopping, missing }: Of<'no-worker'>, when: When): string {
  const gone = missing.slice(0, NAMED_MAX).map(({ worker, seenAtMs }) => `${worker}, last seen at ${when(seenAtMs)}`)
  const sentences = [
    `No worker runs '${type}'.`,
    stopping.length === 0 ? '' : ` Stopping: ${list(stopping)}.`,
    gone.length === 0 ? '' : ` Missing: ${gone.join('; ')}.`,
  ]
  return `${sentences.join('')} Start one with its handler.`
}

function dueText({ type, sinceMs, workers }: Of<'due'>, when: When): string {
  if (workers === null)
    return `It has been due since ${when(sinceMs)} and waits for a worker of '${type}'; this engine does not know its workers.`
  return `It has been due since ${when(sinceMs)}, and nothing known holds it back: a worker of '${type}' takes it next.`
}

export function noteText(note: Note, nowMs: number): string {
  const when = (ms: number): string => timeText(ms, nowMs)
  switch (note.kind) {
    case 'will-die':
      return `When its turn comes it will die: ${sentence(note.error)}`
    case 'paused-goes-on':
      return `Its type was paused by ${note.pause.who} at ${when(note.pause.sinceMs)}; running jobs go on.`
    case 'holder-silent':
      return `${note.worker} has stopped without signing off; last seen at ${when(note.seenAtMs)}.`
    case 'holder-stopping':
      return `${note.worker} has been stopping since ${when(note.sinceMs)}.`
    case 'aged':
      return `It has been due for ${formatDuration(note.waitedMs)}, so its priority ${note.priority} counts as ${note.rank}: its workers raise jobs that wait.`
    case 'quiet-workers':
      return `${list(note.workers)} finished no job for ${formatDuration(note.forMs)} and may be stuck.`
    case 'limits-changed':
      return `${note.override.who} has changed the limits of its type at ${when(note.override.sinceMs)}, ${quoted(note.override.reason)}: ${limitsText(note.override)}. 'millrace limits reset ${note.override.type}' lifts that.`
    case 'maybe-slots-taken':
      return `Its type has ${count(note.max, 'slot')} over all workers${note.by === null ? '' : ' for each tenant'}, and more jobs run than were looked at: all of them may be taken.`
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
