import { decodeTime, isValid } from 'ulid'
import { bodyFields } from '../../../src/engine/records.ts'
import { parseCron } from '../../../src/time/cron.ts'
import type { Report, Rule } from '../check.ts'
import type { Evidence, RecordChange } from '../evidence.ts'
import { CLOCK_MS, mayBeUndone } from '../life.ts'

/** A tick is enqueued once, in its time, and what was missed is made up for as the policy says. */
export const schedules: Rule = {
  name: 'schedules',
  promise: 'Each tick of a schedule is enqueued at most once, never early, and missed ones as its policy says',
  judge(evidence, report) {
    const changes = evidence.records.filter(({ kind, done }) => kind === 'schedule' && done !== 'no')
    for (const [name, own] of Map.groupBy(changes, (change) => change.name)) {
      if (own.some(({ body }) => !evidence.trouble.undo(String(bodyFields(body ?? '').type)).isEmpty)) {
        report.unjudged('schedules of a type of which a fault may have undone something')
        continue
      }
      judgeFence(name, own, report)
      for (const change of own) judgeChange(evidence, name, change, report)
      judgeEvery(evidence, name, own, report)
    }
    for (const story of evidence.jobs.values()) {
      const { id, asks } = story
      const stored = asks.filter(({ from, status }) => from === 'schedule' && status === 'enqueued')
      if (stored.length > 1 && !mayBeUndone(evidence, story))
        report.violation(id, `the run ${id} of a schedule was enqueued ${stored.length} times`)
    }
  },
}

/** Of several keepers that have read one revision one succeeds. */
function judgeFence(name: string, changes: readonly RecordChange[], report: Report): void {
  const taken = new Set<string>()
  for (const { expected, body, done } of changes) {
    if (body === null || done !== 'yes' || expected === null) continue
    if (taken.has(expected)) report.violation(null, `two changes of the schedule '${name}' from one revision succeeded`)
    taken.add(expected)
  }
}

/** The runs of ticks, whose ids are made from their ticks. The id of a run by `runNow` is not. */
function ticksOf({ body, jobs }: RecordChange): readonly string[] {
  const { lastTickMs } = bodyFields(body ?? '')
  const ids = jobs.map(({ id }) => id).filter((id) => isValid(id))
  return lastTickMs === undefined || ids.some((id) => decodeTime(id) === lastTickMs) ? ids : []
}

function judgeChange({ trouble }: Evidence, name: string, change: RecordChange, report: Report): void {
  const { body, jobs, wallMs, askedMs, answeredMs } = change
  if (body === null || jobs.length === 0) return
  const { missed } = bodyFields(body)
  if (missed !== 'all' && jobs.length > 1) {
    report.violation(
      null,
      `the schedule '${name}' enqueued ${jobs.length} runs at once, and its policy is '${String(missed)}'`,
    )
  }
  for (const id of ticksOf(change)) {
    const earlyMs = decodeTime(id) - wallMs
    if (earlyMs <= CLOCK_MS) continue
    if (trouble.wallClock.meets(askedMs, answeredMs ?? askedMs)) report.unjudged('ticks while a clock was set')
    else report.violation(id, `the schedule '${name}' enqueued its run ${id} ${Math.round(earlyMs)} ms before its tick`)
  }
}

/** With the policy `all` no tick is left out between two saves of the same plan, nor between the last one and the next. */
function judgeEvery({ trouble }: Evidence, name: string, changes: readonly RecordChange[], report: Report): void {
  const byRevision = new Map(changes.flatMap((change) => (change.revision === null ? [] : [[change.revision, change]])))
  for (const change of changes) {
    const before = byRevision.get(change.expected ?? '')
    if (before === undefined || change.body === null || before.body === null) continue
    const [plan, last] = [bodyFields(change.body), bodyFields(before.body)]
    if (plan.missed !== 'all' || plan.overlap !== 'allow' || plan.cron !== last.cron || plan.setBacks !== last.setBacks)
      continue
    if (trouble.wallClock.meets(before.askedMs, change.askedMs)) {
      report.unjudged('ticks while a clock was set')
      continue
    }
    const cron = parseCron(String(plan.cron), typeof plan.tz === 'string' ? plan.tz : 'UTC')
    let dueMs = typeof last.nextAtMs === 'number' ? last.nextAtMs : null
    const ticks = ticksOf(change).map((id) => decodeTime(id))
    if (ticks.length > 0 && typeof plan.nextAtMs === 'number') ticks.push(plan.nextAtMs)
    for (const tickMs of ticks) {
      if (dueMs !== null && tickMs !== dueMs) {
        report.violation(
          null,
          `the schedule '${name}' left out its tick of ${new Date(dueMs).toISOString()}, and its policy is 'all'`,
        )
        break
      }
      dueMs = dueMs === null ? null : cron.next(dueMs)
    }
  }
}
