import { drainType, type EmptyingType, obliterateType } from '../../desk/empty-type.ts'
import { NO_JOBS } from '../../engine/counts.ts'
import { publishedDefinition } from '../../engine/definitions.ts'
import type { Counts, TypeCounts } from '../../engine/engine.ts'
import { limitsIn } from '../../engine/limits.ts'
import { pausesIn } from '../../engine/pauses.ts'
import { knownWorkers } from '../../engine/presence.ts'
import { OptionError } from '../../errors.ts'
import { type DefinitionFacts, definitionFacts } from '../../job/definition-facts.ts'
import type { JobView } from '../../job/job.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { AdminContext } from '../context.ts'
import type { TYPE_ROUTES } from '../contract/types.ts'
import type { Call, Handlers } from '../routing.ts'
import { audited } from './audited.ts'

type TypeRoutes = Handlers<keyof typeof TYPE_ROUTES>

export function typeHandlers(admin: AdminContext): TypeRoutes {
  const { limits } = admin.mill
  return {
    showType: ({ params: { type } }) => detailOf(admin, type),
    drainType: ({ params: { type }, body }, call) => emptied(admin, call, { kind: 'drain', type, ...body }),
    obliterateType: ({ params: { type }, body }, call) => emptied(admin, call, { kind: 'obliterate', type, ...body }),
    listLimits: async () => ({ limits: await limits.list() }),
    async setLimits({ params: { type }, body: { concurrency, limit, reason } }, { caller }) {
      const rate = limit === null || limit === undefined ? limit : { max: limit.max, per: limit.perMs }
      const spec = omitUndefined({ concurrency, limit: rate })
      return { type, ...(await limits.set(type, spec, omitUndefined({ who: caller.who, reason }))) }
    },
    async resetLimits({ params: { type }, body: { reason } }, { caller }) {
      return { type, changed: await limits.reset(type, omitUndefined({ who: caller.who, reason })) }
    },
  }
}

/** Jobs that are read for the latencies, and to find the oldest. */
const READ_MAX = 500
const RECENT_MS = 900_000

async function detailOf(admin: AdminContext, type: string) {
  const { mill, sampler, clock } = admin
  const { engine } = mill
  const [counts, paused, beats, overrides, definition, recent, oldest] = await Promise.all([
    sampler.counts(),
    pausesIn(engine)?.list() ?? [],
    knownWorkers(engine, clock)?.list() ?? null,
    limitsIn(engine)?.list() ?? [],
    definitionOf(admin, type),
    recentOf(admin, type),
    oldestOf(admin, type),
  ])
  const own = beats?.filter((beat) => beat.type === type && beat.status === 'RUNNING') ?? null
  const rates = (own ?? []).flatMap(({ work }) => work?.perSecond ?? [])
  return {
    type,
    ...countsOf(counts, type),
    pause: paused.find((pause) => pause.type === type) ?? null,
    workers: own === null ? null : own.length,
    definition,
    defined: admin.jobs.has(type),
    override: overrides.find((override) => override.type === type) ?? null,
    perSecond: rates.length === 0 ? null : rates.reduce((sum, rate) => sum + rate, 0),
    ...{ recent, oldest },
  }
}

/** What this process would check a payload with; otherwise what workers say. */
async function definitionOf({ mill, jobs }: AdminContext, type: string) {
  const job = jobs.get(type)
  const { records } = mill.engine
  const facts = job === undefined ? await (records && publishedDefinition(records, type)) : definitionFacts(job)
  return facts === undefined || facts === null ? null : shownDefinition(facts)
}

function shownDefinition({ type: _, backoff, retention, ...facts }: DefinitionFacts) {
  return { ...facts, backoff: { ...backoff }, retention: { ...retention } }
}

async function recentOf({ mill, clock }: AdminContext, type: string) {
  if (mill.engine.inspector === undefined) return null
  const sinceMs = clock.nowMs() - RECENT_MS
  const listed = await mill.jobs({ type, state: 'completed', limit: READ_MAX })
  const jobs = listed.filter(({ completedAtMs }) => (completedAtMs ?? 0) >= sinceMs)
  const waits = jobs.flatMap(({ startedAtMs, runAtMs }) => (startedAtMs === null ? [] : [startedAtMs - runAtMs]))
  const attempts = jobs.reduce((sum, { attempt }) => sum + attempt, 0)
  return {
    jobs: jobs.length,
    waiting: percentilesOf(waits.map((ms) => Math.max(0, ms))),
    running: percentilesOf(jobs.flatMap(({ durationMs }) => durationMs ?? [])),
    attempts: jobs.length === 0 ? null : attempts / jobs.length,
  }
}

function percentilesOf(values: readonly number[]) {
  const finite = values.filter(Number.isFinite).toSorted((one, other) => one - other)
  if (finite.length === 0) return null
  const at = (share: number): number => finite[Math.ceil(share * finite.length) - 1] ?? 0
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** With more queued jobs than are read, the oldest of all types may be of this one. */
async function oldestOf({ mill, sampler, clock }: AdminContext, type: string) {
  if (mill.engine.inspector === undefined) return null
  const nowMs = clock.nowMs()
  const queued = await mill.jobs({ type, state: 'queued', limit: READ_MAX })
  const isLeast = queued.length === READ_MAX
  const first = isLeast ? await sampler.oldestDue() : null
  if (first?.type === type) return { id: first.id, dueAtMs: first.runAtMs, isLeast: false }
  const due = queued.filter(({ runAtMs }) => runAtMs <= nowMs)
  const oldest = due.reduce<JobView | null>((one, job) => (one === null || job.runAtMs < one.runAtMs ? job : one), null)
  return oldest && { id: oldest.id, dueAtMs: oldest.runAtMs, isLeast }
}

/** A type may be called `constructor`. */
function countsOf(counts: Counts, type: string): TypeCounts {
  return Object.hasOwn(counts, type) ? (counts[type] ?? NO_JOBS) : NO_JOBS
}

interface Emptying {
  readonly kind: 'drain' | 'obliterate'
  readonly type: string
  readonly reason: string
  readonly confirm: string
}

/** The audit has it before the first job goes, with what there was: a process that ends half-way has said what it did. */
async function emptied(admin: AdminContext, { caller }: Call, { kind, type, reason, confirm }: Emptying) {
  if (confirm !== type) throw new OptionError(`'confirm' is '${confirm}'; give the name of the type, '${type}'`)
  const { mill, clock } = admin
  const { who } = caller
  const counts = countsOf(await mill.counts(), type)
  const { ready, delayed, inProgress, completed, dead } = counts
  const total = kind === 'drain' ? ready + delayed : ready + delayed + inProgress + completed + dead
  const emptying: EmptyingType = { engine: mill.engine, clock, type, by: { who, reason }, total }
  const isCritical = (await definitionOf(admin, type))?.critical ?? false
  await audited(admin, caller, { action: `type-${kind}`, reason, type, before: { ...counts } })
  const operation = admin.operations.start({
    ...{ kind, who, reason },
    run: (watched) =>
      kind === 'drain' ? drainType(emptying, watched) : obliterateType({ ...emptying, isCritical }, watched),
  })
  return { operation }
}
