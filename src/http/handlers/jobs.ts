import { lookupOf } from '../../engine/capability-checks.ts'
import type { JobFilter, Receipt } from '../../engine/engine.ts'
import { searchJobs } from '../../engine/search-jobs.ts'
import { MillraceError, OptionError, UnknownJobError } from '../../errors.ts'
import { explainJob } from '../../explain/explain.ts'
import { flowOf, graphOf } from '../../explain/graph.ts'
import { defineJob } from '../../job/definition.ts'
import type { JobView } from '../../job/job.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { readPayload } from '../../job/payload.ts'
import { parseSearch } from '../../job/search.ts'
import type { JobState } from '../../job/states.ts'
import { parseDurationMs } from '../../time/duration.ts'
import type { Caller } from '../auth.ts'
import type { AdminContext } from '../context.ts'
import type { JOB_ROUTES } from '../contract/jobs.ts'
import { readJobCursor, toCursor } from '../paging.ts'
import { refusePlaceholder } from '../placeholders.ts'
import type { Handlers } from '../routing.ts'
import { audited } from './audited.ts'
import { auditOf, detailOf, historyOf, summaryOf } from './views.ts'

const AUDIT_SHOWN_MAX = 100

/** States of jobs that can be run again as new ones: nothing brings the same job back. */
const RUN_AGAIN: readonly JobState[] = ['completed', 'cancelled', 'superseded']

export function jobHandlers(admin: AdminContext): Handlers<keyof typeof JOB_ROUTES> {
  const { mill, jobs, redaction } = admin
  const explainWith = { jobs: [...jobs.values()], clock: admin.clock }
  return {
    async listJobs({ query }) {
      const { search, cursor, limit, ...filter } = omitUndefined(query)
      const before = cursor === undefined ? undefined : readJobCursor(cursor)[0]
      const { items, next, searched } =
        search === undefined
          ? await listed(admin, { ...filter, ...omitUndefined({ before }) }, limit)
          : await searchedFor(admin, { ...filter, search }, { limit, before })
      const shown = items.map((job) => summaryOf(job, redaction))
      return { items: shown, next: next === null ? null : toCursor([next]), searched }
    },
    async showJob({ params: { id } }) {
      const job = await found(admin, id)
      const [history, graph, explanation, audit] = await Promise.all([
        mill.engine.inspector?.history(id) ?? [],
        graphOf(mill, id),
        explainJob(mill, id, explainWith),
        admin.desk?.audit({ jobId: id, limit: AUDIT_SHOWN_MAX }) ?? [],
      ])
      return {
        job: detailOf(job, redaction),
        history: historyOf(history),
        graph,
        explanation,
        audit: audit.map((entry) => auditOf(entry, redaction)),
      }
    },
    showJobFlow: ({ params: { id } }) => flowOf(mill, id),
    async showJobLogs({ params: { id }, query: { after } }) {
      await found(admin, id)
      const { lines, dropped } = await mill.logs(id)
      return { lines: lines.filter(({ seq }) => seq > after), dropped }
    },
    explainJob: ({ params: { id } }) => explainJob(mill, id, explainWith),
    async enqueueJob({ body }, { caller }) {
      const { type, payload, reason, ...options } = omitUndefined(body)
      refusePlaceholder(payload)
      const { tenant, delay, ...rest } = options
      const receipt = await mill.enqueue(jobs.get(type) ?? defineJob({ type }), payload, {
        ...rest,
        ...(tenant !== undefined && { tenant: omitUndefined(tenant) }),
        ...(delay !== undefined && { delay: parseDurationMs(delay, 'delay') }),
      })
      await audited(admin, caller, { action: 'enqueue', jobId: receipt.id, type, reason, after: { ...receipt } })
      return receipt
    },
    async cancelJob({ params: { id }, body: { reason } }, { caller }) {
      const [before] = (await mill.engine.inspector?.find([id])) ?? []
      const act = { who: caller.who, reason: reason ?? 'cancel' }
      if (!(await mill.cancel(id, act))) throw notCancelled(id, await mill.job(id))
      const type = before?.type
      const facts = { state: before?.state ?? null }
      await audited(admin, caller, { action: 'cancel', jobId: id, type, reason, before: facts })
      return { id, cancelled: true }
    },
    async retryJob({ params: { id }, body: { reason, force } }, { caller }) {
      const [job] = (await mill.engine.inspector?.find([id])) ?? []
      if (job === null) throw new UnknownJobError(id)
      if (job !== undefined && job.state !== 'dead_letter' && job.state !== 'discarded') throw notDead(job)
      await admin.desk?.replay(id, omitUndefined({ who: caller.who, reason }), { force })
      return { id, replayed: true }
    },
    runJobAgain: ({ params: { id }, body: { reason } }, { caller }) => runAgain(admin, caller, id, reason),
  }
}

/** One more than needed tells whether there is another page. */
async function listed({ mill }: AdminContext, filter: Partial<JobFilter>, limit: number) {
  const found = await mill.jobs({ ...filter, limit: limit + 1 })
  const items = found.slice(0, limit)
  return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null, searched: null }
}

async function searchedFor(
  { mill, clock, redaction }: AdminContext,
  { search, ...filter }: { readonly search: string } & Pick<Partial<JobFilter>, 'type' | 'state'>,
  page: { readonly limit: number; readonly before: string | undefined },
) {
  const terms = parseSearch(search, clock.nowMs())
  for (const name of ['type', 'state'] as const) {
    if (filter[name] !== undefined && terms[name] !== undefined)
      throw new OptionError(`'${name}' is given beside a search that has '${name}:'; give it once`)
  }
  const lookup = lookupOf(mill.engine)
  const { items, next, looked, reachedMs } = await searchJobs(
    lookup,
    { ...terms, ...filter },
    { ...page, clock, redaction },
  )
  return { items, next, searched: { looked, reachedMs } }
}

async function found({ mill }: AdminContext, id: string): Promise<JobView> {
  const job = await mill.job(id)
  if (job === null) throw new UnknownJobError(id)
  return job
}

async function runAgain(admin: AdminContext, caller: Caller, id: string, reason: string | undefined): Promise<Receipt> {
  const { mill, jobs } = admin
  const job = await found(admin, id)
  if (!RUN_AGAIN.includes(job.state)) throw notOver(job)
  const { type, priority, attempts, tenant, options } = job
  const definition = jobs.get(type) ?? defineJob({ type, version: job.payloadVersion })
  const receipt = await mill.enqueue(definition, readPayload(definition, job.payload, job.payloadVersion), {
    ...{ priority, attempts },
    ...(options?.name !== undefined && { name: options.name }),
    ...(tenant !== null && { tenant }),
    tags: job.tags,
  })
  const before = { of: id, state: job.state }
  await audited(admin, caller, { action: 'enqueue', jobId: receipt.id, type, reason, before, after: { ...receipt } })
  return receipt
}

function notCancelled(id: string, job: JobView | null): MillraceError {
  if (job === null) return new UnknownJobError(id)
  return new MillraceError('ERR_STATE_TRANSITION', `job ${id} has finished (${job.state})`)
}

function notDead({ id, state }: JobView): MillraceError {
  return new MillraceError(
    'ERR_STATE_TRANSITION',
    `job ${id} is ${state}, not a dead letter; there is nothing to retry`,
  )
}

function notOver({ id, state }: JobView): MillraceError {
  const advice = state === 'dead_letter' || state === 'discarded' ? 'replay it instead' : 'wait until it has finished'
  return new MillraceError('ERR_STATE_TRANSITION', `job ${id} is ${state}; ${advice}`)
}
