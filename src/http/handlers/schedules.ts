import type { z } from 'zod'
import { noteEdit } from '../../desk/edit-note.ts'
import type { OperatorAction } from '../../engine/dead-letters.ts'
import { isMillraceError, OptionError, UnknownScheduleError } from '../../errors.ts'
import { defineJob } from '../../job/definition.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { checkSchedule, checkScheduleName, type ScheduleSpec, scheduleFaults } from '../../job/schedule.ts'
import { canonicalJson } from '../../job/stored-json.ts'
import { auditedFacts, overdueSchedules, type ScheduleView } from '../../keeper/schedule-state.ts'
import { taken, upcoming } from '../../keeper/timetable.ts'
import { parseDurationMs } from '../../time/duration.ts'
import type { Caller } from '../auth.ts'
import type { AdminContext } from '../context.ts'
import type { DeepReadonly } from '../contract/route.ts'
import type { SCHEDULE_ROUTES } from '../contract/schedules.ts'
import { keepSecrets, withoutSecrets } from '../kept-secrets.ts'
import { refusePlaceholder } from '../placeholders.ts'
import { HttpError, type Issue } from '../problems.ts'
import type { Handlers } from '../routing.ts'
import { audited } from './audited.ts'

type ScheduleRoutes = Handlers<keyof typeof SCHEDULE_ROUTES>

export function scheduleHandlers(admin: AdminContext): ScheduleRoutes {
  return { ...readHandlers(admin), ...editHandlers(admin), ...actHandlers(admin) }
}

/** A tick that has not run for longer than this is overdue. */
const OVERDUE_MS = 60_000

function shownOf({ clock }: AdminContext, schedule: ScheduleView) {
  return {
    ...schedule,
    declared: schedule.declared !== null,
    overdue: overdueSchedules([schedule], clock.nowMs(), OVERDUE_MS).length > 0,
  }
}

function readHandlers(
  admin: AdminContext,
): Pick<ScheduleRoutes, 'listSchedules' | 'showSchedule' | 'listScheduleRuns' | 'previewSchedule' | 'previewCron'> {
  const { mill, jobs, redaction, clock } = admin
  const { schedules } = mill
  return {
    listSchedules: async () => ({ schedules: (await schedules.list()).map((one) => shownOf(admin, one)) }),
    async showSchedule({ params: { name } }) {
      const schedule = await known(admin, name)
      const { value, redacted } = redaction.payload(schedule.type, textOf(schedule), nameOf(schedule))
      return {
        ...shownOf(admin, schedule),
        ...{ payload: value, redacted, checked: jobs.has(schedule.type) },
        options: { ...schedule.options },
      }
    },
    async listScheduleRuns({ query: { name } }) {
      const { past = [] } = (await schedules.find(name)) ?? {}
      return { past: await withStates(admin, past), outcomesKnown: mill.engine.inspector !== undefined }
    },
    async previewSchedule({ params: { name }, query: { count } }) {
      // A name with spaces would be read as a cron expression.
      await known(admin, name)
      return { name, nextAtMs: await schedules.preview(name, { count }) }
    },
    async previewCron({ query: { name, ...plan } }) {
      const spec = specOf(plan)
      const issues = issuesOf(spec, 'query')
      if (issues.length > 0) return { nextAtMs: [], issues }
      const { runs = 0 } = (name === undefined ? null : await schedules.find(name)) ?? {}
      return { nextAtMs: upcoming({ ...checkSchedule(spec), runs }, clock.nowMs()), issues }
    },
  }
}

/** The jobs of the ticks as they are now: an outcome is never stored twice. */
async function withStates({ mill }: AdminContext, past: ScheduleView['past']) {
  const ids = past.flatMap(({ jobId }) => jobId ?? [])
  const found = ids.length === 0 ? [] : ((await mill.engine.inspector?.find(ids)) ?? [])
  const states = new Map(found.flatMap((job) => (job === null ? [] : [[job.id, job.state] as const])))
  return past.map((tick) => ({ ...tick, state: states.get(tick.jobId ?? '') ?? null }))
}

function editHandlers(admin: AdminContext): Pick<ScheduleRoutes, 'addSchedule' | 'changeSchedule' | 'removeSchedule'> {
  const { mill, jobs, redaction } = admin
  const { schedules } = mill
  return {
    async addSchedule({ body: { name, type, reason, ...plan } }, { caller }) {
      const spec = specOf(plan)
      const free = async (): Promise<void> => {
        if ((await schedules.find(checkScheduleName(name))) !== null) throw taken(name)
      }
      const issues = [
        ...(await issueOf('body.name', free)),
        ...(await issueOf('body.type', () => jobs.get(type) ?? defineJob({ type }))),
        ...issuesOf(spec, 'body'),
      ]
      refuse(issues)
      refusePlaceholder(plan.payload)
      const after = await schedules.add(name, { ...spec, type: jobs.get(type) ?? type })
      await auditChange(admin, caller, { reason, before: null, after })
      return shownOf(admin, after)
    },
    async changeSchedule({ params: { name }, body: { reason, ...plan } }, { caller }) {
      const before = await known(admin, name)
      if (before.declared !== null) throw declaredInCode(name)
      const stored = { type: before.type, payload: textOf(before), options: before.options }
      const shown = redaction.payload(before.type, stored.payload, nameOf(before)).value
      const { payload, secrets } = keepSecrets(redaction, stored, plan.payload === undefined ? shown : plan.payload)
      const spec = specOf({ ...before, ...omitUndefined(plan), payload })
      refuse(issuesOf(spec, 'body'))
      refusePlaceholder(payload)
      const type = jobs.get(before.type) ?? before.type
      const after = await withoutSecrets(secrets, () => schedules.upsert(name, { ...spec, type }))
      await auditChange(admin, caller, { reason, before, after })
      return shownOf(admin, after)
    },
    async removeSchedule({ params: { name }, body: { reason } }, { caller }) {
      const before = await known(admin, name)
      if (!(await schedules.unschedule(name))) throw new UnknownScheduleError(name)
      const { type } = before
      const entry = { reason, subject: name, type, before: auditedFacts(before) }
      await audited(admin, caller, { action: 'schedule-remove', ...entry })
      return { name, removed: true }
    },
  }
}

interface Changed {
  readonly reason: string | undefined
  readonly before: ScheduleView | null
  readonly after: ScheduleView
}

/** An edited payload is noted as that of a dead letter is: what changed, without secrets. */
async function auditChange(admin: AdminContext, caller: Caller, { reason, before, after }: Changed): Promise<void> {
  const { name: subject, type } = after
  const texts = before === null ? null : { before: textOf(before), after: textOf(after) }
  const isEdited = texts !== null && canonicalJson(before?.payload) !== canonicalJson(after.payload)
  const edit = isEdited && { edit: await noteEdit(admin.redaction, { type, name: nameOf(after) }, texts) }
  await audited(admin, caller, {
    ...{ action: 'schedule-change', reason, subject, type },
    ...(before !== null && { before: auditedFacts(before) }),
    after: { ...auditedFacts(after), ...edit },
  })
}

function actHandlers(admin: AdminContext): Pick<ScheduleRoutes, 'pauseSchedule' | 'resumeSchedule' | 'runSchedule'> {
  const { schedules } = admin.mill
  const change = async (
    act: 'pause' | 'resume',
    name: string,
    by: { readonly caller: Caller; readonly reason: string | undefined },
  ) => {
    const before = await known(admin, name)
    const after = await schedules[act](name)
    const action: OperatorAction = act === 'pause' ? 'schedule-pause' : 'schedule-resume'
    await audited(admin, by.caller, {
      ...{ action, reason: by.reason, subject: name, type: after.type },
      before: { paused: before.paused, nextAtMs: before.nextAtMs },
      after: { paused: after.paused, nextAtMs: after.nextAtMs },
    })
    return shownOf(admin, after)
  }
  return {
    pauseSchedule: ({ params: { name }, body: { reason } }, { caller }) => change('pause', name, { caller, reason }),
    resumeSchedule: ({ params: { name }, body: { reason } }, { caller }) => change('resume', name, { caller, reason }),
    async runSchedule({ params: { name }, body: { reason } }, { caller }) {
      const { type } = await known(admin, name)
      const receipt = await schedules.runNow(name)
      const after = { ...receipt }
      await audited(admin, caller, { action: 'schedule-run', reason, subject: name, jobId: receipt.id, type, after })
      return receipt
    },
  }
}

async function known({ mill }: AdminContext, name: string): Promise<ScheduleView> {
  const schedule = await mill.schedules.find(name)
  if (schedule === null) throw new UnknownScheduleError(name)
  return schedule
}

const textOf = ({ payload }: Pick<ScheduleView, 'payload'>): string => JSON.stringify(payload)

/** Of its jobs within their type. */
const nameOf = ({ options, type }: Pick<ScheduleView, 'options' | 'type'>): string => options.name ?? type

type Plan = Partial<
  Omit<DeepReadonly<z.output<(typeof SCHEDULE_ROUTES)['addSchedule']['body']>>, 'name' | 'type' | 'reason'>
> &
  Pick<ScheduleSpec, 'cron'>

/** A schedule as code would write it. */
function specOf({ cron, tz, startMs, endMs, limit, missed, overlap, payload, options }: Plan): ScheduleSpec {
  const { timeout, tenant, ...rest } = options ?? {}
  return {
    cron,
    ...omitUndefined({ tz, missed, overlap, payload, limit: limit ?? undefined }),
    ...omitUndefined({ start: dateOf(startMs), end: dateOf(endMs) }),
    options: {
      ...omitUndefined(rest),
      ...(timeout !== undefined && { timeout: parseDurationMs(timeout, 'timeout') }),
      ...(tenant !== undefined && { tenant: omitUndefined(tenant) }),
    },
  }
}

function dateOf(ms: number | null | undefined): Date | undefined {
  return ms === null || ms === undefined ? undefined : new Date(ms)
}

function issuesOf(spec: ScheduleSpec, part: 'body' | 'query'): Issue[] {
  return scheduleFaults(spec).map(({ field, message }) => ({
    path: `${part}.${field === 'end' ? 'endMs' : field}`,
    message,
  }))
}

async function issueOf(path: string, check: () => unknown): Promise<Issue[]> {
  try {
    await check()
    return []
  } catch (error) {
    if (!isMillraceError(error, 'ERR_OPTION_INVALID')) throw error
    return [{ path, message: error.message }]
  }
}

function refuse(issues: readonly Issue[]): void {
  const [first] = issues
  if (first !== undefined) throw new HttpError(400, 'ERR_REQUEST_INVALID', first.message, { issues })
}

function declaredInCode(name: string): OptionError {
  return new OptionError(`code declares the schedule '${name}'; change it there, or pause it here`)
}
