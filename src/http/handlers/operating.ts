import type { z } from 'zod'
import { drainWorker } from '../../client/drain.ts'
import { NO_JOBS } from '../../engine/counts.ts'
import { packageVersion } from '../../engine/package-info.ts'
import { pausesIn } from '../../engine/pauses.ts'
import { type Beat, knownWorkers } from '../../engine/presence.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { SharedSlots } from '../../job/slots.ts'
import { lagSeverity } from '../../observe/lag.ts'
import type { WorkerView } from '../../observe/workers.ts'
import { demandToken } from '../auth.ts'
import type { AdminContext } from '../context.ts'
import { facetsOf } from '../context.ts'
import type { OPERATING_ROUTES } from '../contract/operating.ts'
import type { DeepReadonly } from '../contract/route.ts'
import type { Handlers } from '../routing.ts'
import { audited } from './audited.ts'
import { historyOf } from './history.ts'

type OperatingRoutes = Handlers<keyof typeof OPERATING_ROUTES>

export function operatingHandlers(admin: AdminContext): OperatingRoutes {
  return { ...overviewHandlers(admin), ...pauseHandlers(admin) }
}

function overviewHandlers(
  admin: AdminContext,
): Pick<
  OperatingRoutes,
  | 'showSession'
  | 'createLink'
  | 'showOverview'
  | 'showHistory'
  | 'listQueues'
  | 'listWorkers'
  | 'listAlerts'
  | 'listTopics'
> {
  const { mill, sampler } = admin
  return {
    showSession: (_input, { caller }) => ({
      ...caller,
      tokens: admin.hasTokens,
      version: packageVersion(),
      engine: mill.engine.name,
      capabilities: { ...mill.engine.capabilities },
      facets: facetsOf(admin),
    }),
    async createLink({ body: { forMs, reason } }, { caller }) {
      const untilMs = admin.clock.nowMs() + forMs
      const link = admin.sessions.link(demandToken(caller), untilMs)
      const subject = `until ${new Date(untilMs).toISOString()}`
      await audited(admin, caller, { action: 'link', reason, subject, after: { untilMs } })
      return { path: `${admin.basePath}/#/?link=${link}`, untilMs }
    },
    showOverview: () => sampler.overview(),
    showHistory: ({ query }) => historyOf(admin, query),
    listQueues: async () => ({ queues: await queuesOf(admin) }),
    async listWorkers() {
      const [workers, inProgress] = await Promise.all([mill.workers(), jobsInProgress(admin)])
      return { workers: workers.map((worker) => workerOf(worker, inProgress)) }
    },
    listAlerts: () => ({ alerts: admin.alerting.current() }),
    async listTopics() {
      const { topics } = admin
      const lags = (await topics?.lags()) ?? []
      const shown = lags.map(({ group, topic, lag }) => {
        const limits = topics?.limits(topic) ?? null
        const level = (limits === null ? null : lagSeverity(lag, limits)) ?? 'ok'
        const { warning = null, critical = null } = limits ?? {}
        return { group, topic, lag, warning, critical, level } as const
      })
      return { topics: shown }
    },
  }
}

interface JobInProgress {
  readonly id: string
  readonly type: string
  readonly sinceMs: number
}

/** With more jobs in progress, those of the last heartbeats are shown. */
const IN_PROGRESS_MAX = 500

/** The jobs in progress by worker, from the store: heartbeats are up to ten seconds old. Null when they cannot be listed. */
async function jobsInProgress({
  mill,
}: AdminContext): Promise<ReadonlyMap<string | null, readonly JobInProgress[]> | null> {
  if (mill.engine.inspector === undefined) return null
  const jobs = await mill.jobs({ state: 'in_progress', limit: IN_PROGRESS_MAX })
  if (jobs.length === IN_PROGRESS_MAX) return null
  const inProgress = jobs.map(({ id, type, leaseOwner, startedAtMs, updatedAtMs }) => ({
    ...{ id, type, leaseOwner },
    sinceMs: startedAtMs ?? updatedAtMs,
  }))
  return Map.groupBy(inProgress, ({ leaseOwner }) => leaseOwner)
}

function workerOf(worker: WorkerView, inProgress: Awaited<ReturnType<typeof jobsInProgress>>) {
  const { id, action, seenAtMs, stoppingSinceMs, concurrency, types } = worker
  const { startedAtMs, version, memoryBytes, loopDelayMs, perSecond, drains } = worker
  const lastJobs = types.flatMap(({ lastJobAtMs }) => lastJobAtMs ?? [])
  const said = types.flatMap(({ type, jobs }) => jobs.map((job) => ({ id: job.id, type, sinceMs: job.startedAtMs })))
  const now = inProgress === null ? null : (inProgress.get(id) ?? [])
  const condition = conditionNow(worker.condition, now)
  return {
    ...{ id, condition, stoppingSinceMs, concurrency },
    ...{ startedAtMs, version, memoryBytes, loopDelayMs, perSecond, drains },
    types: types.map(({ type }) => type),
    text: action ?? CONDITION_TEXTS[condition],
    lastBeatAtMs: seenAtMs,
    lastJobAtMs: lastJobs.length === 0 ? null : Math.max(...lastJobs),
    running: now ?? said,
    // A worker of another program does not report its jobs.
    runningCount: now?.length ?? (concurrency === null ? null : worker.running),
    host: worker.host,
    holds: types.every(({ holds }) => holds === undefined)
      ? null
      : types.flatMap(({ type, holds = [] }) => holds.map((held) => ({ type, ...held }))),
  }
}

/** Its last heartbeat may be from before it took a job, or ended the last one. */
function conditionNow(said: WorkerView['condition'], now: readonly unknown[] | null): WorkerView['condition'] {
  if (now === null || (said !== 'working' && said !== 'idle')) return said
  return now.length > 0 ? 'working' : 'idle'
}

const CONDITION_TEXTS: Readonly<Record<WorkerView['condition'], string>> = {
  missing: 'it has been silent for a minute without having signed off',
  overdue: 'it has been stopping for more than two minutes',
  stuck: 'jobs wait for it, but it handles none',
  late: 'its last heartbeat has expired',
  stopping: 'it finishes its jobs and takes no more',
  working: 'it runs jobs',
  running: 'what it does is not known here',
  idle: 'nothing waits for it',
}

function pauseHandlers(admin: AdminContext): Pick<OperatingRoutes, 'pauseQueue' | 'resumeQueue' | 'drainWorker'> {
  const { mill } = admin
  return {
    async drainWorker({ params: { id }, body: { reason } }, { caller }) {
      const changed = await drainWorker(mill.engine, id, { who: caller.who, reason: reason ?? 'drain' })
      if (changed) await audited(admin, caller, { action: 'worker-drain', reason, subject: id })
      return { id, asked: true, changed }
    },
    async pauseQueue({ params: { type }, body: { reason } }, { caller }) {
      return { type, paused: true, changed: await mill.pause(type, omitUndefined({ who: caller.who, reason })) }
    },
    async resumeQueue({ params: { type }, body: { reason } }, { caller }) {
      return { type, paused: false, changed: await mill.resume(type, omitUndefined({ who: caller.who, reason })) }
    },
  }
}

type Queues = DeepReadonly<z.output<(typeof OPERATING_ROUTES)['listQueues']['answer']>>['queues']

/** Every type that has jobs, a pause, a worker or a definition here, by name. */
export async function queuesOf({ mill, sampler, jobs, clock }: AdminContext): Promise<Queues> {
  const [pauses, presence] = [pausesIn(mill.engine), knownWorkers(mill.engine, clock)]
  const [counts, paused, beats] = await Promise.all([sampler.counts(), pauses?.list() ?? [], presence?.list() ?? null])
  const types = new Set([
    ...Object.keys(counts),
    ...paused.map(({ type }) => type),
    ...(beats ?? []).map(({ type }) => type),
    ...jobs.keys(),
  ])
  return [...types].sort().map((type) => ({
    type,
    ...(counts[type] ?? NO_JOBS),
    pause: paused.find((pause) => pause.type === type) ?? null,
    workers: beats === null ? null : runningOf(beats, type),
    slots: jobs.get(type)?.slots ?? slotsOf(beats ?? [], type),
    defined: jobs.has(type),
  }))
}

function slotsOf(beats: readonly Beat[], type: string): SharedSlots | null {
  return beats.find((beat) => beat.type === type && beat.work?.slots !== undefined)?.work?.slots ?? null
}

function runningOf(beats: readonly Beat[], type: string): number {
  return beats.filter((beat) => beat.type === type && beat.status === 'RUNNING').length
}
