import { z } from 'zod'
import { MISSED_POLICIES, OVERLAP_POLICIES } from '../../job/schedule.ts'
import { JOB_STATES } from '../../job/states.ts'
import { PAST_TICKS } from '../../keeper/past-ticks.ts'
import { Duration } from './jobs.ts'
import { routes } from './route.ts'
import { ByReason, Issues, NewTags, NewTenant, reason, TIME_MS_MAX, timeMs, typeName } from './shapes.ts'

const name = z.strictObject({ name: z.string().min(1).max(200) })
const time = z.number().int().min(0).max(TIME_MS_MAX)

const Schedule = z.object({
  name: z.string(),
  type: z.string(),
  cron: z.string(),
  tz: z.string(),
  startMs: z.number().nullable(),
  endMs: z.number().nullable(),
  limit: z.number().nullable(),
  missed: z.enum(MISSED_POLICIES),
  overlap: z.enum(OVERLAP_POLICIES),
  /** Whether code declares it: then it is changed there. */
  declared: z.boolean(),
  paused: z.boolean(),
  nextAtMs: z.number().nullable(),
  lastTickMs: z.number().nullable(),
  lastJobId: z.string().nullable(),
  runs: z.number(),
  skips: z.number(),
  /** Ticks without a job, because no keeper was running. */
  missedTicks: z.number(),
  overdue: z.boolean(),
})

const PastTick = z.object({
  what: z.enum(PAST_TICKS),
  atMs: z.number(),
  /** How many ticks were left out in a row; 1 for a run. */
  count: z.number(),
  jobId: z.string().nullable(),
  /** Of its job now; null when there is none, it is no longer stored, or the engine cannot look it up. */
  state: z.enum(JOB_STATES).nullable(),
})

/** Cron, zone and name are checked by the rules of schedules, which say what to give. */
const plan = {
  cron: z.string().max(200),
  tz: z.string().max(100).optional(),
  startMs: time.nullable().optional(),
  endMs: time.nullable().optional(),
  limit: z.number().int().min(1).nullable().optional(),
  missed: z.enum(MISSED_POLICIES).optional(),
  overlap: z.enum(OVERLAP_POLICIES).optional(),
  payload: z.unknown().optional(),
  options: z
    .strictObject({
      priority: z.number().int().min(1).max(10).optional(),
      attempts: z.number().int().min(1).max(100).optional(),
      timeout: Duration.optional(),
      tenant: NewTenant.optional(),
      tags: NewTags.optional(),
    })
    .optional(),
  reason: reason.optional(),
}

const READ_ROUTES = routes({
  listSchedules: {
    method: 'get',
    path: '/api/v1/schedules',
    summary: 'Schedules by name.',
    role: 'viewer',
    needs: 'schedules',
    answer: z.object({ schedules: z.array(Schedule) }),
  },
  showSchedule: {
    method: 'get',
    path: '/api/v1/schedules/{name}',
    summary: 'One schedule with its payload and its options.',
    role: 'viewer',
    needs: 'schedules',
    params: name,
    answer: Schedule.extend({
      /** Without its secrets. */
      payload: z.unknown(),
      /** Whether parts of the payload are hidden. */
      redacted: z.boolean(),
      /** Whether this process has the definition of the type, and checks payloads by it. */
      checked: z.boolean(),
      options: z.record(z.string(), z.unknown()),
    }),
  },
  listScheduleRuns: {
    method: 'get',
    path: '/api/v1/schedule-runs',
    summary: 'The last ten ticks of a schedule, and what became of them; none of a name that no schedule has.',
    role: 'viewer',
    needs: 'schedules',
    query: name,
    answer: z.object({
      /** The newest last. */
      past: z.array(PastTick),
      /** Whether the engine can look up what became of a job. */
      outcomesKnown: z.boolean(),
    }),
  },
  previewSchedule: {
    method: 'get',
    path: '/api/v1/schedules/{name}/next',
    summary: 'The next runs of a schedule; default: ten.',
    role: 'viewer',
    needs: 'schedules',
    params: name,
    query: z.strictObject({ count: z.coerce.number().int().min(1).max(100).default(10) }),
    answer: z.object({ name: z.string(), nextAtMs: z.array(z.number()) }),
  },
  previewCron: {
    method: 'get',
    path: '/api/v1/schedule-preview',
    summary: 'The next ten runs of a schedule that is not stored yet, or what is wrong with it.',
    role: 'viewer',
    needs: 'schedules',
    query: z.strictObject({
      cron: plan.cron,
      tz: plan.tz,
      startMs: timeMs.optional(),
      endMs: timeMs.optional(),
      limit: z.coerce.number().int().min(1).optional(),
      /** The stored schedule that is to be changed, whose runs count towards the limit. */
      name: z.string().max(200).optional(),
    }),
    answer: z.object({ nextAtMs: z.array(z.number()), issues: Issues }),
  },
})

const WRITE_ROUTES = routes({
  addSchedule: {
    method: 'post',
    path: '/api/v1/schedules',
    summary: 'Adds a schedule. 400 if another has the name.',
    role: 'operator',
    needs: 'schedules',
    body: z.strictObject({ name: z.string().max(200), type: typeName, ...plan }),
    answer: Schedule,
    status: 201,
  },
  changeSchedule: {
    method: 'post',
    path: '/api/v1/schedules/{name}',
    summary: 'Changes a schedule; what is left out stays, null removes a bound. 400 if code declares it.',
    role: 'operator',
    needs: 'schedules',
    params: name,
    body: z.strictObject({ ...plan, cron: plan.cron.optional() }),
    answer: Schedule,
  },
  removeSchedule: {
    method: 'post',
    path: '/api/v1/schedules/{name}/remove',
    summary: 'Removes a schedule; its jobs stay. One that code declares comes back when that code starts.',
    role: 'operator',
    needs: 'schedules',
    params: name,
    body: ByReason,
    answer: z.object({ name: z.string(), removed: z.literal(true) }),
  },
  pauseSchedule: {
    method: 'post',
    path: '/api/v1/schedules/{name}/pause',
    summary: 'Stops the runs of a schedule until it is resumed.',
    role: 'operator',
    needs: 'schedules',
    params: name,
    body: ByReason,
    answer: Schedule,
  },
  resumeSchedule: {
    method: 'post',
    path: '/api/v1/schedules/{name}/resume',
    summary: 'Continues a schedule with the next tick.',
    role: 'operator',
    needs: 'schedules',
    params: name,
    body: ByReason,
    answer: Schedule,
  },
  runSchedule: {
    method: 'post',
    path: '/api/v1/schedules/{name}/run',
    summary: 'Enqueues a run now.',
    role: 'operator',
    needs: 'schedules',
    params: name,
    body: ByReason,
    answer: z.object({ id: z.string(), status: z.string() }),
    status: 201,
  },
})

export const SCHEDULE_ROUTES = { ...READ_ROUTES, ...WRITE_ROUTES } as const
