/** The queue's key figures for a scrape and for the HTTP API, under the names of the pipeline's design. */
import { z } from 'zod'
import { type RouteTable, route } from '../../../src/http/index.ts'
import type { MakeInstrument } from '../../../src/observe/metrics/instrument.ts'
import { figureGauges, type GaugeOf } from '../../figure-gauges.ts'
import { checkAlerts } from './alert-rules.ts'
import type { QueueMetrics } from './metrics.ts'

/** Reads `collectMetrics` of all processes. */
export type ReadMetrics = () => QueueMetrics

type Figure = Exclude<keyof QueueMetrics, 'windowMs' | 'deadByType' | 'byType' | 'due' | 'delayed'>

const GAUGES: Readonly<Record<Figure, GaugeOf>> = {
  queueDepth: ['queue_depth', 'queueDepth: queued jobs, due or delayed'],
  queueAgeMs: ['queue_age_seconds', 'queueAgeMs: how long the oldest due job has been waiting', 0.001],
  inProgressCount: ['in_progress', 'inProgressCount: jobs that are in progress'],
  deadLetterCount: ['dead_letters', 'deadLetterCount: dead letters not yet replayed or discarded'],
  processingRate: ['processing_rate', 'processingRate: jobs completed per minute, over the last hour'],
  successRate: ['success_rate', 'successRate: share of completed jobs among completed and dead ones of the last hour'],
  attemptFailureRate: ['attempt_failure_rate', 'attemptFailureRate: share of failed attempts in the last hour'],
  latencyP50Ms: ['latency_p50_seconds', 'latencyP50Ms: half of the completed attempts took no longer', 0.001],
  latencyP95Ms: ['latency_p95_seconds', 'latencyP95Ms: 95 % of the completed attempts took no longer', 0.001],
  latencyP99Ms: ['latency_p99_seconds', 'latencyP99Ms: 99 % of the completed attempts took no longer', 0.001],
  leaseExpiryRate: ['lease_expiry_rate', 'leaseExpiryRate: expired leases per minute, over the last hour'],
  processed: ['processed', 'processed: jobs completed or dead in the last hour'],
  completed: ['completed', 'completed: jobs completed in the last hour'],
}

/** Gauges `conversation_queue_depth` and so on. */
export function queueInstrument(read: ReadMetrics): MakeInstrument {
  return figureGauges('conversation', GAUGES, async () => read())
}

const ended = {
  processingRate: z.number(),
  successRate: z.number(),
  attemptFailureRate: z.number(),
  latencyP50Ms: z.number(),
  latencyP95Ms: z.number(),
  latencyP99Ms: z.number(),
  leaseExpiryRate: z.number(),
  processed: z.number(),
  completed: z.number(),
}

const Metrics = z.object({
  windowMs: z.number(),
  queueDepth: z.number(),
  due: z.number(),
  delayed: z.number(),
  queueAgeMs: z.number(),
  inProgressCount: z.number(),
  deadLetterCount: z.number(),
  deadByType: z.record(z.string(), z.number()),
  ...ended,
  byType: z.record(z.string(), z.object(ended)),
})

const Alert = z.object({
  severity: z.enum(['WARNING', 'ERROR']),
  metric: z.string(),
  value: z.number(),
  threshold: z.number(),
  message: z.string(),
})

/** `collectMetrics` and `checkAlerts` over HTTP. */
export function queueRoutes(read: ReadMetrics): RouteTable {
  return {
    conversationMetrics: route(
      {
        method: 'get',
        path: '/api/v1/conversations/metrics',
        summary: 'The key figures of the queue, over all processes and the last hour.',
        role: 'viewer',
        answer: Metrics,
      },
      () => read(),
    ),
    conversationAlerts: route(
      {
        method: 'get',
        path: '/api/v1/conversations/alerts',
        summary: 'The alerts that hold now.',
        role: 'viewer',
        answer: z.object({ alerts: z.array(Alert) }),
      },
      () => ({ alerts: checkAlerts(read()) }),
    ),
  }
}
