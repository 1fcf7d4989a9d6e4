import { z } from 'zod'
import { ALERT_SUBJECTS } from '../../observe/alerts/rule.ts'
import { RANGE_NAMES } from '../../observe/history/ranges.ts'
import { ROLES, routes } from './route.ts'
import { ByReason, Pause, reason, TypeCounts, typeName } from './shapes.ts'

const DAY_MS = 86_400_000
const LINK_MS_DEFAULT = DAY_MS
const LINK_MS_MAX = 30 * DAY_MS

const type = z.strictObject({ type: typeName })

/** Small, because it is pushed every second. */
export const Overview = z.object({
  atMs: z.number(),
  /** When the counts were taken: large stores are counted less often. */
  countedAtMs: z.number(),
  counts: z.record(z.string(), TypeCounts),
  paused: z.array(z.string()),
  /** How long the oldest due job has been waiting; null when none waits. */
  oldestWaitingMs: z.number().nullable(),
  workers: z.number(),
  alertsFiring: z.number(),
  health: z.enum(['healthy', 'degraded', 'unhealthy']),
  /** Why it is not healthy: a sentence for each check that is not. */
  reasons: z.array(z.object({ check: z.enum(['engine', 'workers', 'queues', 'deadLetters']), text: z.string() })),
})

/**
 * What happened in one step, in all processes. `failedPerSecond` counts attempts, whether tried again or not. Rates and
 * latencies are null when they are unknown.
 */
export const HistoryPoint = z.object({
  atMs: z.number(),
  completedPerSecond: z.number().nullable(),
  failedPerSecond: z.number().nullable(),
  enqueuedPerSecond: z.number().nullable(),
  waitP50Ms: z.number().nullable(),
  waitP95Ms: z.number().nullable(),
  waitP99Ms: z.number().nullable(),
  durationP50Ms: z.number().nullable(),
  durationP95Ms: z.number().nullable(),
  durationP99Ms: z.number().nullable(),
  ready: z.number().nullable(),
  delayed: z.number().nullable(),
  inProgress: z.number().nullable(),
  dead: z.number().nullable(),
})

/** What may explain a change in the charts. */
const Annotation = z.object({
  atMs: z.number(),
  kind: z.enum(['deploy', 'pause', 'resume', 'alert', 'resolved']),
  text: z.string(),
  /** The type that it is about; null for all. */
  type: z.string().nullable(),
})

const Worker = z.object({
  id: z.string(),
  types: z.array(z.string()),
  condition: z.string(),
  /** An explanation of the condition. */
  text: z.string(),
  lastBeatAtMs: z.number(),
  lastJobAtMs: z.number().nullable(),
  stoppingSinceMs: z.number().nullable(),
  concurrency: z.number().nullable(),
  startedAtMs: z.number().nullable(),
  /** Of the package. This and the next three are null for a worker of an earlier version, or of another program. */
  version: z.string().nullable(),
  /** Of its process. */
  memoryBytes: z.number().nullable(),
  /** How late its event loop was at worst between its last two heartbeats. */
  loopDelayMs: z.number().nullable(),
  /** Attempts that ended between its last two heartbeats. */
  perSecond: z.number().nullable(),
  /** Whether it stops when it is asked to. */
  drains: z.boolean(),
  running: z.array(z.object({ id: z.string(), type: z.string(), sinceMs: z.number() })),
  runningCount: z.number().nullable(),
  /** Where the store sees it run. */
  host: z.string().nullable(),
  /** The partitions that it alone works on, and how far it is behind there; null where types are not divided. */
  holds: z.array(z.object({ type: z.string(), partition: z.number(), lag: z.number() })).nullable(),
})

const Queue = TypeCounts.extend({
  type: z.string(),
  pause: Pause.nullable(),
  /** Workers of the type; null without presence. */
  workers: z.number().nullable(),
  /** How many of its jobs, or with `by` of each tenant's, run at once over all workers at most; null where it has no such bound. */
  slots: z.object({ max: z.number(), by: z.enum(['tenant']).nullable() }).nullable(),
  /** Whether this process has its definition. */
  defined: z.boolean(),
})

export const Alert = z.object({
  rule: z.string(),
  severity: z.string(),
  status: z.enum(['pending', 'firing', 'resolved']),
  sinceMs: z.number(),
  resolvedAtMs: z.number().nullable(),
  text: z.string(),
  labels: z.record(z.string(), z.string()),
  /** What was measured, and from where on the rule is raised. */
  value: z.number().nullable().optional(),
  threshold: z.number().nullable().optional(),
  unit: z.enum(['ms', 'share']).optional(),
  /** What it is about. */
  about: z.enum(ALERT_SUBJECTS).optional(),
  /** What to do about it: a path in the package, or what the rule gave. */
  runbook: z.string().optional(),
})

const Topic = z.object({
  group: z.string(),
  topic: z.string(),
  lag: z.number(),
  warning: z.number().nullable(),
  critical: z.number().nullable(),
  level: z.enum(['ok', 'warning', 'critical']),
})

export const OPERATING_ROUTES = routes({
  showSession: {
    method: 'get',
    path: '/api/v1/session',
    summary: 'The caller, its role, and the capabilities of the engine.',
    role: 'viewer',
    answer: z.object({
      who: z.string(),
      role: z.enum(ROLES),
      /** How the caller is known: by its machine, a bearer token, a login, or a read-only link. */
      by: z.enum(['machine', 'token', 'login', 'link']),
      /** When the read-only link ends; null for others. */
      untilMs: z.number().nullable(),
      /** Whether tokens are required; otherwise every caller on this machine may do everything. */
      tokens: z.boolean(),
      version: z.string(),
      engine: z.string(),
      capabilities: z.record(z.string(), z.unknown()),
      /** Which facets the engine has, and which pages workloads have added. */
      facets: z.record(z.string(), z.boolean()),
    }),
  },
  createLink: {
    method: 'post',
    path: '/api/v1/links',
    summary: 'Makes a link with which the dashboard can be viewed without a token, for a time.',
    role: 'operator',
    body: z.strictObject({
      forMs: z.number().int().min(60_000).max(LINK_MS_MAX).default(LINK_MS_DEFAULT),
      reason: reason.optional(),
    }),
    /** The path is that of the dashboard; put the origin before it. */
    answer: z.object({ path: z.string(), untilMs: z.number() }),
    status: 201,
  },
  showOverview: {
    method: 'get',
    path: '/api/v1/overview',
    summary: 'Counts by type and state, workers, alerts and health.',
    role: 'viewer',
    answer: Overview,
  },
  showHistory: {
    method: 'get',
    path: '/api/v1/history',
    summary:
      'Throughput, latency and depth over a range, of all types or one, for charts. Without a range: the samples of this process.',
    role: 'viewer',
    query: z.strictObject({
      range: z.enum(RANGE_NAMES).optional(),
      /** Only with a range. */
      type: typeName.optional(),
      /** Only without a range. */
      sinceMs: z.coerce.number().int().min(0).optional(),
    }),
    answer: z.object({
      stepMs: z.number(),
      /** With a range at most 180, one for each step. */
      points: z.array(HistoryPoint),
      /** Whether the store keeps a history. Without one a range has the samples of this process, if it is 15m. */
      kept: z.boolean(),
      /** Types that are kept apart. */
      types: z.array(z.string()),
      /** Whether there were more: they are in the whole only. */
      hasOthers: z.boolean(),
      /** Oldest first, at most 200: the newest. */
      annotations: z.array(Annotation),
      /** How many more there were. */
      annotationsLeft: z.number(),
    }),
  },
  listQueues: {
    method: 'get',
    path: '/api/v1/queues',
    summary: 'Every type with its counts, its pause and its workers.',
    role: 'viewer',
    answer: z.object({ queues: z.array(Queue) }),
  },
  pauseQueue: {
    method: 'post',
    path: '/api/v1/queues/{type}/pause',
    summary: 'Starts no more jobs of a type; running ones go on.',
    role: 'operator',
    needs: 'pausing',
    params: type,
    body: ByReason,
    answer: z.object({ type: z.string(), paused: z.literal(true), changed: z.boolean() }),
  },
  resumeQueue: {
    method: 'post',
    path: '/api/v1/queues/{type}/resume',
    summary: 'Starts jobs of a type again.',
    role: 'operator',
    needs: 'pausing',
    params: type,
    body: ByReason,
    answer: z.object({ type: z.string(), paused: z.literal(false), changed: z.boolean() }),
  },
  listWorkers: {
    method: 'get',
    path: '/api/v1/workers',
    summary: 'Running, stopping and missing workers, and their jobs.',
    role: 'viewer',
    needs: 'presence',
    answer: z.object({ workers: z.array(Worker) }),
  },
  drainWorker: {
    method: 'post',
    path: '/api/v1/workers/{id}/drain',
    summary: 'Asks a worker to take no more jobs, finish those that it runs, and stop. It obeys within two seconds.',
    role: 'operator',
    needs: 'draining',
    params: z.strictObject({ id: z.string().min(1).max(300) }),
    body: ByReason,
    answer: z.object({ id: z.string(), asked: z.literal(true), changed: z.boolean() }),
  },
  listAlerts: {
    method: 'get',
    path: '/api/v1/alerts',
    summary: 'Firing, pending and recently resolved alerts.',
    role: 'viewer',
    answer: z.object({ alerts: z.array(Alert) }),
  },
  listTopics: {
    method: 'get',
    path: '/api/v1/topics',
    summary: 'The lag of each consumer group on each topic, with its limits.',
    role: 'viewer',
    needs: 'topics',
    answer: z.object({ topics: z.array(Topic) }),
  },
})
