import type { AuditEntry } from '../../../src/engine/dead-letters.ts'
import type { Report, Rule } from '../check.ts'
import type { Act, Evidence, JobStory } from '../evidence.ts'
import { lastMoves, mayBeActed, mayBeUndone, mayHave } from '../life.ts'
import { mayBeGivenUp } from '../removals.ts'

/** Dead letters are visible, each act on one is done once, and the audit has all of them. */
export const desk: Rule = {
  name: 'I9',
  promise: 'Every dead letter is visible, an act on it is done once, and every act and removal is in the audit',
  judge(evidence, report) {
    const audit = Map.groupBy(evidence.final.audit, ({ jobId }) => jobId)
    for (const story of evidence.jobs.values()) {
      if (mayBeUndone(evidence, story)) {
        report.unjudged('dead letters of a time that a fault may have undone')
        continue
      }
      judgeVisible(evidence, story, audit.get(story.id) ?? [], report)
      judgeOnce(story, report)
      judgeAudit(evidence, story, audit.get(story.id) ?? [], report)
    }
  },
}

function judgeVisible(evidence: Evidence, story: JobStory, audit: readonly AuditEntry[], report: Report): void {
  const { final } = evidence
  const { id } = story
  const view = final.jobs.get(id)
  const isListed = final.letters.has(id)
  if (view !== undefined) {
    if (view.state === 'dead_letter' && !isListed) report.violation(id, `job ${id} is a dead letter and is not listed`)
    if (view.state !== 'dead_letter' && isListed)
      report.violation(id, `job ${id} is listed as dead letter and is ${view.state}`)
    return
  }
  const moves = lastMoves(story)
  // A newer version of its latest key may have ended it otherwise.
  const wasDead = moves.length > 0 && moves.every(({ to, done }) => to === 'dead_letter' && done === 'yes')
  if (!wasDead || isListed || story.ask?.job.latest !== undefined) return
  if (audit.some(({ action }) => action === 'purge' || action === 'erase')) return
  if (isResolvedLetterAgain(evidence, story)) return
  report.violation(id, `the dead letter ${id} is gone, and no entry of the audit says why`)
}

/**
 * In a log a record that is read again and dies again is the same letter: one that was replayed or discarded stays so. Its due
 * time tells it from the record of a replay.
 */
function isResolvedLetterAgain({ capabilities }: Evidence, { acts, starts }: JobStory): boolean {
  const last = starts.at(-1)
  if (capabilities.settle !== 'watermark' || last === undefined) return false
  const deaths = starts
    .filter((start) => start !== last && start.lease.runAtMs === last.lease.runAtMs)
    .flatMap(({ settles }) => settles.filter(({ outcome, done }) => outcome.kind === 'dead' && done !== 'no'))
  return acts.some(
    ({ kind, done, askedMs }) =>
      (kind === 'replay' || kind === 'discard') &&
      done === 'yes' &&
      askedMs < last.claim.atMs &&
      deaths.some((death) => death.askedMs < askedMs),
  )
}

/** Each death allows one replay or discard, and each undo of a discard one more. */
function judgeOnce(story: JobStory, report: Report): void {
  const { id, acts, starts } = story
  const done = (kind: Act['kind'], ...how: readonly Act['done'][]): number =>
    acts.filter((act) => act.kind === kind && how.includes(act.done)).length
  const taken = done('replay', 'yes') + done('discard', 'yes')
  if (taken === 0) return
  const deaths = starts.reduce(
    (sum, { settles }) =>
      sum + settles.filter((settle) => settle.outcome.kind === 'dead' && settle.done !== 'no').length,
    0,
  )
  if (taken > deaths + done('undo', 'yes', 'unknown')) {
    report.violation(id, `${taken} replays and discards of job ${id} succeeded, and it had died ${deaths} times`)
  }
}

function judgeAudit(evidence: Evidence, story: JobStory, audit: readonly AuditEntry[], report: Report): void {
  const { id, acts } = story
  if (mayBeActed(story, 'erase')) return
  const named = (who: string, action: string, reason: string): string => `${action} by ${who} (${reason})`
  const asked = Map.groupBy(
    acts.filter(({ kind }) => kind !== 'cancel'),
    ({ who, kind, reason }) => named(who, kind, reason),
  )
  const entries = Map.groupBy(audit, ({ who, action, reason }) => named(who, action, reason))
  for (const [name, own] of asked) {
    const sure = own.filter(({ done }) => done === 'yes').length
    const found = entries.get(name)?.length ?? 0
    if (found < sure) report.violation(id, `the audit has ${found} entries of ${sure}: ${name} of job ${id}`)
  }
  for (const [name, own] of entries) {
    const [first] = own
    if (first === undefined || !DESK.has(first.action) || mayRemove(evidence, story, first)) continue
    const allowed = (asked.get(name) ?? []).filter(({ done }) => done !== 'no').length
    if (own.length > allowed) {
      report.violation(id, `the audit has ${own.length} entries, and ${allowed} acts were done: ${name} of job ${id}`)
    }
  }
}

const DESK: ReadonlySet<string> = new Set(['replay', 'discard', 'undo', 'purge', 'erase'])

/** Retention and removal options purge too. */
function mayRemove(evidence: Evidence, story: JobStory, { action }: AuditEntry): boolean {
  return action === 'purge' && mayHave(story, 'dead') && mayBeGivenUp(evidence, story)
}
