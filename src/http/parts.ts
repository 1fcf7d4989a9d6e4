import type { z } from 'zod'
import type { Mill } from '../client/mill.ts'
import type { Desk } from '../desk/desk.ts'
import type { TopicLetters } from '../engine/topics.ts'
import type { AnyJob, Log } from '../job/definition.ts'
import type { HealthEndpoint } from '../observe/health.ts'
import type { ObservedTopics } from '../observe/lag.ts'
import type { Metrics } from '../observe/metrics/instrument.ts'
import type { Sampler } from '../observe/sampling/sampler.ts'
import type { Clock } from '../time/clock.ts'
import type { AdminToken } from './auth.ts'
import type { Alert } from './contract/operating.ts'
import type { Shown } from './handlers/shown.ts'
import type { Operations } from './operations.ts'
import type { Redaction } from './redaction.ts'

/** Alerts as an evaluator knows them now: those that fire, and those that were resolved lately. */
export interface AlertSource {
  current(): readonly AlertView[]
}
export type AlertView = Shown<z.output<typeof Alert>>

/** Topics of a broker, and the desk for their dead letters. */
export interface Topics extends ObservedTopics {
  readonly desk: TopicLetters
}

export interface AdminOptions {
  /** Definitions: payloads are checked by them, and shown without what their schemas mark as secret. */
  readonly jobs?: readonly AnyJob[]
  /** Without any, only callers on this machine are answered, and they may do everything. */
  readonly tokens?: readonly AdminToken[]
  readonly alerting?: AlertSource
  /** For overview and charts. One is started unless given. */
  readonly sampler?: Sampler
  readonly topics?: Topics
  /** For `/metrics`. The mill is measured from now on unless given. */
  readonly metrics?: Metrics
  /** More names under which this server is known, such as `queue.example.com`. */
  readonly hosts?: readonly string[]
  /** The folder of the built dashboard; that of the package unless told, null for none. */
  readonly page?: string | null
  /** Where this is mounted, such as `/admin`; `/` unless told. */
  readonly basePath?: string
  /** With tokens: health and metrics are told to everyone, for probes that have none. */
  readonly publicHealth?: boolean
  /** More health endpoints by path, such as `/actuator/health`. */
  readonly healthEndpoints?: Readonly<Record<string, HealthEndpoint>>
  readonly health?: { readonly minWorkers?: number; readonly deadLetterThreshold?: number }
  /** The address of whoever sent a request, where the server is not one of Node's. */
  readonly peer?: (request: Request, env: unknown) => string | null
  readonly clock?: Clock
  readonly log?: Log
}

/** What handlers stand on. */
export interface Parts {
  readonly mill: Mill
  /** Null where the engine keeps no dead letters. */
  readonly desk: Desk | null
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly redaction: Redaction
  readonly operations: Operations
  readonly sampler: Pick<Sampler, 'overview' | 'counts' | 'points' | 'stepMs' | 'subscribe'>
  readonly alerting: AlertSource
  readonly topics: Topics | null
  readonly metrics: () => Promise<Metrics>
  readonly hasTokens: boolean
  readonly health: NonNullable<AdminOptions['health']>
  readonly clock: Clock
  readonly log: Log
}
