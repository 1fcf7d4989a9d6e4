/** The contract's answers under the names that the pages use. */
import type { RouteId as CoreRouteId, Routes as CoreRoutes } from '../../../src/http/contract/index.ts'
import type { Answer, Facet as CoreFacet } from '../../../src/http/contract/route.ts'
import type { TableRoutes } from '../../../workloads/job-tables/http/contract.ts'
import type { WebhookRoutes } from '../../../workloads/webhooks/http/contract.ts'

export type { StreamEvents } from '../../../src/http/contract/index.ts'
export type { Answer, Request, Role } from '../../../src/http/contract/route.ts'

/** The routes of every mill, and those that workloads add. */
export type Routes = CoreRoutes & TableRoutes & WebhookRoutes
export type RouteId = CoreRouteId | keyof TableRoutes | keyof WebhookRoutes
/** What pages need: a facet of the engine, or a workload. */
export type Facet = CoreFacet | 'tables' | 'webhooks'

type Of<Id extends RouteId> = Answer<Routes[Id]>

export type Session = Of<'showSession'>
export type Overview = Of<'showOverview'>
export type Past = Of<'showHistory'>
export type HistoryPoint = Past['points'][number]
export type JobSummary = Of<'listJobs'>['items'][number]
export type ShownJob = Of<'showJob'>
export type JobDetail = ShownJob['job']
export type JobEvent = ShownJob['history'][number]
export type Explanation = ShownJob['explanation']
export type GraphNode = ShownJob['graph'][number]
export type LogLine = Of<'showJobLogs'>['lines'][number]
export type Letter = Of<'listDeadLetters'>['items'][number]
export type LetterGroup = Of<'groupDeadLetters'>['groups'][number]
export type ShownLetter = Of<'showDeadLetter'>
export type BulkAnswer = Of<'replayDeadLetters'>
export type BulkOutcome = NonNullable<BulkAnswer['outcome']>
export type Operation = Of<'showOperation'>
export type AuditEntry = Of<'listAudit'>['items'][number]
export type Worker = Of<'listWorkers'>['workers'][number]
export type Schedule = Of<'listSchedules'>['schedules'][number]
export type ScheduleRuns = Of<'listScheduleRuns'>
export type ShownSchedule = Of<'showSchedule'>
export type ShownType = Of<'showType'>
export type Queue = Of<'listQueues'>['queues'][number]
export type Alert = Of<'listAlerts'>['alerts'][number]
export type JobTables = Of<'showJobTables'>
export type JobTable = JobTables['tables'][number]
export type StuckRow = JobTable['stuckRows'][number]
export type Supervised = NonNullable<JobTables['recent']>[number]
export type Finding = JobTables['findings'][number]
export type Webhook = Of<'listWebhooks'>['webhooks'][number]
export type WebhookDelivery = Of<'listWebhookDeliveries'>['deliveries'][number]
export type Topic = Of<'listTopics'>['topics'][number]
