/** Jobs and audit entries with the contract's fields, and without secrets. */
import type { z } from 'zod'
import type { AuditEntry } from '../../engine/dead-letters.ts'
import type { JobEvent, JobView } from '../../job/job.ts'
import type { Redaction } from '../../job/redaction.ts'
import type { DeepReadonly } from '../contract/route.ts'
import type { AuditEntry as AuditShape, JobDetail, JobSummary } from '../contract/shapes.ts'

export function summaryOf(job: JobView, redaction: Redaction): DeepReadonly<z.output<typeof JobSummary>> {
  return { ...job, ...timesOf(job), tags: [...job.tags], progress: redaction.named(job.progress) }
}

/** JSON has no NaN. */
const finite = (ms: number | null): number | null => (Number.isFinite(ms) ? ms : null)

/** Other programs may have written unreadable times. */
function timesOf(job: JobView) {
  return {
    createdAtMs: finite(job.createdAtMs),
    runAtMs: finite(job.runAtMs),
    updatedAtMs: finite(job.updatedAtMs),
    startedAtMs: finite(job.startedAtMs),
    completedAtMs: finite(job.completedAtMs),
    leaseUntilMs: finite(job.leaseUntilMs),
  }
}

export function historyOf(history: readonly JobEvent[]) {
  return history.map((event) => ({ ...event, atMs: finite(event.atMs) }))
}

export function detailOf(job: JobView, redaction: Redaction): DeepReadonly<z.output<typeof JobDetail>> {
  return {
    ...job,
    ...timesOf(job),
    tags: [...job.tags],
    payload: redaction.payload(job.type, job.payload, job.options?.name ?? job.type).value,
    progress: redaction.named(job.progress),
    result: redaction.named(job.result),
    options: job.options === null ? null : { ...job.options },
  }
}

/** The entry of an edit has the payload before and after, redacted like the job's own. */
export function auditOf(entry: AuditEntry, redaction: Redaction): DeepReadonly<z.output<typeof AuditShape>> {
  const shown = (facts: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
    typeof facts.payload === 'string'
      ? { ...facts, payload: redaction.payload(entry.type, facts.payload).value }
      : facts
  return { ...entry, before: shown(entry.before), after: entry.after === null ? null : shown(entry.after) }
}
