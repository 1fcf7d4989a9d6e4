import { MillraceError, UnknownJobError } from '../../errors.ts'
import { explainJob } from '../../explain/explain.ts'
import { graphOf } from '../../explain/graph.ts'
import { defineJob } from '../../job/definition.ts'
import type { JobView } from '../../job/job.ts'
import { parseDurationMs } from '../../time/duration.ts'
import type { JOB_ROUTES } from '../contract/jobs.ts'
import { readJobCursor, toCursor } from '../cursors.ts'
import type { Parts } from '../parts.ts'
import type { Handlers } from '../routing.ts'
import { scan } from '../scan.ts'
import { noted, refusePlaceholder } from './acts.ts'
import { given } from './shown.ts'
import { auditOf, detailOf, historyOf, summaryOf } from './views.ts'

const AUDIT_SHOWN_MAX = 100

export function jobHandlers(parts: Parts): Handlers<keyof typeof JOB_ROUTES> {
  const { mill, jobs, redaction } = parts
  const explainWith = { jobs: [...jobs.values()], clock: parts.clock }
  return {
    async listJobs({ query }) {
      const { search, cursor, limit, ...filter } = given(query)
      const exact = search === undefined || cursor !== undefined ? null : await mill.job(search)
      if (exact !== null) return { items: [summaryOf(exact, redaction)], next: null }
      const { items, next } = await scan<JobView, string>({
        clock: parts.clock,
        limit,
        from: cursor === undefined ? null : readJobCursor(cursor)[0],
        read: (before, max) => mill.jobs({ ...filter, limit: max, ...(before !== null && { before }) }),
        placeOf: ({ id }) => id,
        matches: search === undefined ? null : finder(search),
      })
      return { items: items.map((job) => summaryOf(job, redaction)), next: next === null ? null : toCursor([next]) }
    },
    async showJob({ params: { id } }) {
      const job = await found(parts, id)
      const [history, graph, explanation, audit] = await Promise.all([
        mill.history(id),
        graphOf(mill, id),
        explainJob(mill, id, explainWith),
        parts.desk?.audit({ jobId: id, limit: AUDIT_SHOWN_MAX }) ?? [],
      ])
      return {
        job: detailOf(job, redaction),
        history: historyOf(history),
        graph,
        explanation,
        audit: audit.map((entry) => auditOf(entry, redaction)),
      }
    },
    explainJob: ({ params: { id } }) => explainJob(mill, id, explainWith),
    async enqueueJob({ body }, { caller }) {
      const { type, payload, reason, ...options } = given(body)
      refusePlaceholder(payload)
      const { tenant, delay, ...rest } = options
      const receipt = await mill.enqueue(jobs.get(type) ?? defineJob({ type }), payload, {
        ...rest,
        ...(tenant !== undefined && { tenant: given(tenant) }),
        ...(delay !== undefined && { delay: parseDurationMs(delay, 'delay') }),
      })
      await noted(parts, caller, { action: 'enqueue', jobId: receipt.id, type, reason, after: { ...receipt } })
      return receipt
    },
    async cancelJob({ params: { id }, body: { reason } }, { caller }) {
      const [before] = (await mill.engine.inspector?.find([id])) ?? []
      const act = { who: caller.who, reason: reason ?? 'cancel' }
      if (!(await mill.cancel(id, act))) throw notCancelled(id, await mill.job(id))
      const type = before?.type
      const facts = { state: before?.state ?? null }
      await noted(parts, caller, { action: 'cancel', jobId: id, type, reason, before: facts })
      return { id, cancelled: true }
    },
    async retryJob({ params: { id }, body: { reason, force } }, { caller }) {
      const [job] = (await mill.engine.inspector?.find([id])) ?? []
      if (job === null) throw new UnknownJobError(id)
      if (job !== undefined && job.state !== 'dead_letter') throw notDead(job)
      await parts.desk?.replay(id, given({ who: caller.who, reason }), { force })
      return { id, replayed: true }
    },
  }
}

async function found({ mill }: Parts, id: string): Promise<JobView> {
  const job = await mill.job(id)
  if (job === null) throw new UnknownJobError(id)
  return job
}

function notCancelled(id: string, job: JobView | null): MillraceError {
  if (job === null) return new UnknownJobError(id)
  return new MillraceError('ERR_STATE_TRANSITION', `job ${id} has finished (${job.ended ?? job.state})`)
}

function notDead({ id, state }: JobView): MillraceError {
  return new MillraceError('ERR_STATE_TRANSITION', `job ${id} is ${state}, no dead letter; there is nothing to retry`)
}

/** Ids, types, keys, tenants and error texts, whatever their case. */
function finder(search: string): (job: JobView) => boolean {
  const wanted = search.toLowerCase()
  return ({ id, type, key, latestKey, tenant, error }) =>
    [id, type, key, latestKey, tenant?.orgId, tenant?.workspaceId, error?.name, error?.code, error?.message].some(
      (text) => text?.toLowerCase().includes(wanted) === true,
    )
}
