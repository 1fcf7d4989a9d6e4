import type { z } from 'zod'
import type { Mill } from '../client/mill.ts'
import type { Desk } from '../desk/desk.ts'
import { CANNOT_EMPTY, emptyingParts } from '../desk/empty-type.ts'
import { CANNOT_DRAIN, CANNOT_LIMIT, CANNOT_PAUSE, lookupIn } from '../engine/capability-checks.ts'
import type { DeadLetters } from '../engine/dead-letters.ts'
import { limitsIn } from '../engine/limits.ts'
import { pausesIn } from '../engine/pauses.ts'
import { knownWorkers, presenceIn } from '../engine/presence.ts'
import type { AnyJob, Log } from '../job/definition.ts'
import type { Redaction } from '../job/redaction.ts'
import type { HealthEndpoint } from '../observe/health.ts'
import type { ObservedTopics } from '../observe/lag.ts'
import type { Metrics } from '../observe/metrics/instrument.ts'
import type { Sampler } from '../observe/sampling/sampler.ts'
import type { Clock } from '../time/clock.ts'
import type { AdminToken } from './auth.ts'
import type { CauseCounts } from './cause-counts.ts'
import type { Alert } from './contract/operating.ts'
import type { DeepReadonly, Facet } from './contract/route.ts'
import type { Operations } from './operations.ts'
import type { RouteTable } from './routing.ts'
import type { Sessions } from './sessions.ts'

/** Pending, firing and recently resolved alerts. */
export interface AlertSource {
  current(): readonly AlertView[]
}
export type AlertView = DeepReadonly<z.output<typeof Alert>>

export interface AdminOptions {
  /** Definitions, to check payloads and to hide what their schemas mark as secret. */
  readonly jobs?: readonly AnyJob[]
  /** Default: none. Then only callers on this machine are answered, and they may do everything. An empty list is refused. */
  readonly tokens?: readonly AdminToken[]
  readonly alerting?: AlertSource
  /** For the overview and the charts; default: a new one. */
  readonly sampler?: Sampler
  readonly topics?: ObservedTopics
  /** What the desk lists and acts on; default: the engine's. On Kafka those are of one group. */
  readonly deadLetters?: DeadLetters
  /** More routes, by id, with the same authentication and validation. */
  readonly routes?: RouteTable
  /** Pages of the dashboard that ask these routes, such as `webhooks`. */
  readonly pages?: readonly string[]
  /** For `/metrics`; default: metrics attached now. */
  readonly metrics?: Metrics
  /** More host names of this server, such as `queue.example.com`. */
  readonly hosts?: readonly string[]
  /** The folder of the built dashboard; default: the package's. Null: no dashboard. */
  readonly page?: string | null
  /** Where this is mounted, such as `/admin`; default: `/`. */
  readonly basePath?: string
  /**
   * A header with the user's name, such as `X-Forwarded-User`, that an authenticating proxy sets: the audit then has the
   * user. Set it only if callers can come through that proxy alone, and it removes the header from what they send.
   */
  readonly trustUserHeader?: string
  /** Whether health and metrics need no token; default: false. */
  readonly publicHealth?: boolean
  /** More health endpoints by path, such as `/actuator/health`. */
  readonly healthEndpoints?: Readonly<Record<string, HealthEndpoint>>
  readonly health?: { readonly minWorkers?: number; readonly deadLetterThreshold?: number }
  /** The remote address of a request, when the server is not one of Node's. */
  readonly peer?: (request: Request, env: unknown) => string | null
  readonly clock?: Clock
  readonly log?: Log
}

/** Everything the handlers use. */
export interface AdminContext {
  readonly mill: Mill
  /** Null when the engine keeps no dead letters, as `desk` is. */
  readonly deadLetters: DeadLetters | null
  readonly desk: Desk | null
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly redaction: Redaction
  readonly operations: Operations
  readonly causes: CauseCounts
  readonly sampler: Omit<Sampler, 'close'>
  readonly alerting: AlertSource
  readonly topics: ObservedTopics | null
  /** Pages of workloads, which are facets for the dashboard. */
  readonly pages: readonly string[]
  readonly metrics: () => Promise<Metrics>
  readonly hasTokens: boolean
  /** Without a trailing slash; empty at the root. */
  readonly basePath: string
  readonly sessions: Sessions
  readonly health: NonNullable<AdminOptions['health']>
  readonly clock: Clock
  readonly log: Log
}

export interface FacetOf {
  isThere(admin: AdminContext): boolean
  /** Completes the error "the … engine" when it is missing. */
  readonly limit: string
}

/** What routes may need. */
export const FACETS: Readonly<Record<Facet, FacetOf>> = {
  inspection: { isThere: ({ mill }) => lookupIn(mill.engine) !== undefined, limit: 'cannot look up single jobs' },
  listingByState: {
    isThere: ({ mill }) => mill.engine.inspector !== undefined,
    limit: 'cannot list jobs by every state',
  },
  cancellation: { isThere: ({ mill }) => mill.engine.controls !== undefined, limit: 'cannot cancel a job' },
  logs: { isThere: ({ mill }) => mill.engine.logs !== undefined, limit: 'keeps no logs of jobs' },
  deadLetters: { isThere: ({ desk }) => desk !== null, limit: 'keeps no dead letters' },
  schedules: { isThere: ({ mill }) => mill.engine.records !== undefined, limit: 'keeps no schedules' },
  presence: {
    isThere: ({ mill: { engine }, clock }) => knownWorkers(engine, clock) !== undefined,
    limit: 'does not know which workers there are',
  },
  pausing: { isThere: ({ mill }) => pausesIn(mill.engine) !== undefined, limit: CANNOT_PAUSE },
  limiting: { isThere: ({ mill }) => limitsIn(mill.engine) !== undefined, limit: CANNOT_LIMIT },
  emptying: { isThere: ({ mill }) => emptyingParts(mill.engine) !== null, limit: CANNOT_EMPTY },
  draining: {
    isThere: ({ mill: { engine } }) => presenceIn(engine) !== undefined && pausesIn(engine)?.all !== undefined,
    limit: CANNOT_DRAIN,
  },
  topics: { isThere: ({ topics }) => topics !== null, limit: 'has no topics' },
}

export function facetsOf(admin: AdminContext): Readonly<Record<string, boolean>> {
  const entries = Object.entries(FACETS).map(([name, { isThere }]) => [name, isThere(admin)])
  return Object.fromEntries([...admin.pages.map((page) => [page, true]), ...entries])
}
