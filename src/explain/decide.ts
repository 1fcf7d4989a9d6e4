/** From facts to reasons, as a pure function. */
import type { JobEventName, JobView } from '../job/job.ts'
import type { Decision, Note, Reason } from './explanation.ts'
import { explainedJob } from './explanation.ts'
import type { Facts } from './facts.ts'
import { decideQueued } from './queued.ts'

export function decide(facts: Facts): Decision {
  const { job } = facts
  switch (job.state) {
    case 'completed':
      return { reasons: [completed(facts)], notes: [] }
    case 'dead_letter':
      return { reasons: [dead(facts)], notes: [] }
    case 'superseded':
      return { reasons: [superseded(facts)], notes: [] }
    case 'cancelled':
    case 'discarded':
      return { reasons: [{ kind: job.state, atMs: job.completedAtMs, ...actOf(facts, job.state) }], notes: [] }
    case 'in_progress':
      return { reasons: [held(facts)], notes: holderNotes(facts) }
    case 'queued':
      return decideQueued(facts)
    case 'failed':
      return { reasons: [{ kind: 'unsettled' }], notes: [] }
    default:
      job.state satisfies never
      return { reasons: [{ kind: 'unsettled' }], notes: [] }
  }
}

function completed({ job, history }: Facts): Reason {
  const worker = history.findLast(({ name }) => name === 'completed')?.worker ?? null
  return { kind: 'completed', atMs: job.completedAtMs, worker, tookMs: job.durationMs }
}

function dead({ job }: Facts): Reason {
  const { completedAtMs: atMs, attempt, attempts, error } = job
  return { kind: 'dead', atMs, attempt, attempts, error }
}

/** A log has neither history nor latest keys, and supersedes nothing but what was replayed. */
function superseded(facts: Facts): Reason {
  const { job, history } = facts
  const isReplay = history.length === 0 && job.latestKey === null
  return { kind: 'superseded', atMs: job.completedAtMs, by: successorOf(facts), ...(isReplay && { isReplay }) }
}

/** The history names the newer job, which may be removed. */
function successorOf({ successor, history }: Facts) {
  if (successor !== null) return explainedJob(successor)
  const by = history.findLast(({ name }) => name === 'superseded')?.detail?.by
  return typeof by === 'string' ? { id: by, type: '', state: 'removed' } : null
}

/** Who did it and why, if the history tells. */
function actOf({ history }: Facts, name: JobEventName) {
  const detail = history.findLast((event) => event.name === name)?.detail
  return { who: textOf(detail?.who), reason: textOf(detail?.reason) }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function held({ job, nowMs, recovery }: Facts): Reason {
  const { leaseOwner: worker, leaseUntilMs, attempt, attempts } = job
  const isOver = leaseUntilMs === null ? recovery.byReaper : leaseUntilMs <= nowMs
  if (!isOver) return { kind: 'running', worker, sinceMs: job.startedAtMs, attempt, attempts, leaseUntilMs }
  const takenByMs = leaseUntilMs === null || recovery.maxMs === null ? null : leaseUntilMs + recovery.maxMs
  return { kind: 'lease-expired', worker, atMs: leaseUntilMs, takenByMs, isLast: attempt >= attempts }
}

function holderNotes({ job, pause, presence }: Facts): readonly Note[] {
  return [...(pause === null ? [] : [{ kind: 'paused-goes-on', pause } as const]), ...presenceNotes(job, presence)]
}

function presenceNotes({ leaseOwner, type }: JobView, presence: Facts['presence']): readonly Note[] {
  if (leaseOwner === null || presence === null) return []
  const isOwner = (one: { readonly type: string; readonly instance: string }): boolean =>
    one.instance === leaseOwner && one.type === type
  const beat = presence.beats.find(isOwner)
  const seen = presence.seen.find(isOwner)
  if (beat === undefined)
    return seen === undefined ? [] : [{ kind: 'holder-silent', worker: leaseOwner, seenAtMs: seen.atMs }]
  if (beat.stoppingSinceMs === null) return []
  return [{ kind: 'holder-stopping', worker: leaseOwner, sinceMs: beat.stoppingSinceMs }]
}
