import type { NotedAction } from '../../engine/dead-letters.ts'
import { UnknownScheduleError } from '../../errors.ts'
import { overdueSchedules, type ScheduleView } from '../../keeper/schedule-state.ts'
import { lagSeverity } from '../../observe/lag.ts'
import type { WorkerView } from '../../observe/workers.ts'
import type { Caller } from '../auth.ts'
import type { OPERATING_ROUTES } from '../contract/operating.ts'
import { facetsOf } from '../facets.ts'
import { packageVersion } from '../package.ts'
import type { Parts } from '../parts.ts'
import type { Handlers } from '../routing.ts'
import { noted } from './acts.ts'
import { queuesOf } from './queues.ts'
import { given } from './shown.ts'

type OperatingRoutes = Handlers<keyof typeof OPERATING_ROUTES>

export function operatingHandlers(parts: Parts): OperatingRoutes {
  return { ...seeing(parts), ...pausing(parts), ...scheduling(parts) }
}

function seeing(
  parts: Parts,
): Pick<
  OperatingRoutes,
  'showSession' | 'showOverview' | 'showHistory' | 'listQueues' | 'listWorkers' | 'listAlerts' | 'listTopics'
> {
  const { mill, sampler } = parts
  return {
    showSession: (_input, { caller }) => ({
      ...caller,
      tokens: parts.hasTokens,
      version: packageVersion(),
      engine: mill.engine.name,
      capabilities: { ...mill.engine.capabilities },
      facets: facetsOf(parts),
    }),
    showOverview: () => sampler.overview(),
    showHistory: ({ query: { sinceMs } }) => ({ stepMs: sampler.stepMs, points: sampler.points(sinceMs) }),
    listQueues: async () => ({ queues: await queuesOf(parts) }),
    async listWorkers() {
      const [workers, held] = await Promise.all([mill.workers(), heldNow(parts)])
      return { workers: workers.map((worker) => workerOf(worker, held)) }
    },
    listAlerts: () => ({ alerts: parts.alerting.current() }),
    async listTopics() {
      const { topics } = parts
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

interface HeldJob {
  readonly id: string
  readonly type: string
  readonly sinceMs: number
}

/** More jobs in progress than this are told as their workers last said. */
const HELD_MAX = 500

/** By worker, what the store says is in progress: a beat is up to ten seconds old. Null where that cannot be listed. */
async function heldNow({ mill }: Parts): Promise<ReadonlyMap<string | null, readonly HeldJob[]> | null> {
  if (mill.engine.inspector === undefined) return null
  const jobs = await mill.jobs({ state: 'in_progress', limit: HELD_MAX })
  if (jobs.length === HELD_MAX) return null
  const held = jobs.map(({ id, type, leaseOwner, startedAtMs, updatedAtMs }) => ({
    ...{ id, type, leaseOwner },
    sinceMs: startedAtMs ?? updatedAtMs,
  }))
  return Map.groupBy(held, ({ leaseOwner }) => leaseOwner)
}

function workerOf(worker: WorkerView, held: Awaited<ReturnType<typeof heldNow>>) {
  const { id, condition, action, seenAtMs, stoppingSinceMs, concurrency, types } = worker
  const lastJobs = types.flatMap(({ lastJobAtMs }) => lastJobAtMs ?? [])
  const said = types.flatMap(({ type, jobs }) => jobs.map((job) => ({ id: job.id, type, sinceMs: job.startedAtMs })))
  const now = held === null ? null : (held.get(id) ?? [])
  return {
    ...{ id, condition, stoppingSinceMs, concurrency },
    types: types.map(({ type }) => type),
    text: action ?? CONDITION_TEXTS[condition],
    lastBeatAtMs: seenAtMs,
    lastJobAtMs: lastJobs.length === 0 ? null : Math.max(...lastJobs),
    running: now ?? said,
    // One that is another program's does not say what it runs.
    runningCount: now?.length ?? (concurrency === null ? null : worker.running),
  }
}

const CONDITION_TEXTS: Readonly<Record<WorkerView['condition'], string>> = {
  missing: 'it has not been heard for a minute and has not said goodbye',
  overdue: 'it has been stopping for more than two minutes',
  stuck: 'jobs wait for it and it handles none',
  late: 'its last sign of life has run out',
  stopping: 'it ends what it runs and takes no more',
  working: 'it runs jobs',
  idle: 'nothing waits for it',
}

function pausing({ mill }: Parts): Pick<OperatingRoutes, 'pauseQueue' | 'resumeQueue'> {
  return {
    async pauseQueue({ params: { type }, body: { reason } }, { caller }) {
      return { type, paused: true, changed: await mill.pause(type, given({ who: caller.who, reason })) }
    },
    async resumeQueue({ params: { type }, body: { reason } }, { caller }) {
      return { type, paused: false, changed: await mill.resume(type, given({ who: caller.who, reason })) }
    },
  }
}

/** A tick that nobody ran for longer than this is missing. */
const OVERDUE_MS = 60_000

function scheduling(
  parts: Parts,
): Pick<OperatingRoutes, 'listSchedules' | 'previewSchedule' | 'pauseSchedule' | 'resumeSchedule' | 'runSchedule'> {
  const { schedules } = parts.mill
  const shown = (schedule: ScheduleView) => ({
    ...schedule,
    overdue: overdueSchedules([schedule], parts.clock.nowMs(), OVERDUE_MS).length > 0,
  })
  const change = async (
    act: 'pause' | 'resume',
    name: string,
    by: { readonly caller: Caller; readonly reason: string | undefined },
  ) => {
    const before = await known(parts, name)
    const after = await schedules[act](name)
    const action: NotedAction = act === 'pause' ? 'schedule-pause' : 'schedule-resume'
    await noted(parts, by.caller, {
      ...{ action, reason: by.reason, subject: name, type: after.type },
      before: { paused: before.paused, nextAtMs: before.nextAtMs },
      after: { paused: after.paused, nextAtMs: after.nextAtMs },
    })
    return shown(after)
  }
  return {
    listSchedules: async () => ({ schedules: (await schedules.list()).map(shown) }),
    async previewSchedule({ params: { name }, query: { count } }) {
      // A name with spaces would be taken for a cron text.
      await known(parts, name)
      return { name, nextAtMs: await schedules.preview(name, { count }) }
    },
    pauseSchedule: ({ params: { name }, body: { reason } }, { caller }) => change('pause', name, { caller, reason }),
    resumeSchedule: ({ params: { name }, body: { reason } }, { caller }) => change('resume', name, { caller, reason }),
    async runSchedule({ params: { name }, body: { reason } }, { caller }) {
      const { type } = await known(parts, name)
      const receipt = await schedules.runNow(name)
      const after = { ...receipt }
      await noted(parts, caller, { action: 'schedule-run', reason, subject: name, jobId: receipt.id, type, after })
      return receipt
    },
  }
}

async function known({ mill }: Parts, name: string): Promise<ScheduleView> {
  const schedule = await mill.schedules.find(name)
  if (schedule === null) throw new UnknownScheduleError(name)
  return schedule
}
