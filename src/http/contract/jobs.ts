import { z } from 'zod'
import { JOB_STATES } from '../../job/states.ts'
import { routes } from './route.ts'
import {
  AuditEntry,
  ByReason,
  cursor,
  Explanation,
  JobDetail,
  JobEvent,
  JobSummary,
  jobId,
  LogLine,
  limit,
  NewTags,
  NewTenant,
  reason,
  search,
  searchedPage,
  typeName,
} from './shapes.ts'

const params = z.strictObject({ id: jobId })

export const Duration = z.union([
  z.string().regex(/^\d+(\.\d+)?(ms|s|m|h|d)$/, "give a duration such as '30s'"),
  z.number().int().min(0),
])

const GraphNode = z.object({ id: z.string(), type: z.string(), state: z.string(), after: z.array(z.string()) })

const EnqueueReceipt = z.object({ id: z.string(), status: z.enum(['enqueued', 'duplicate', 'replaced', 'stale']) })

export const JOB_ROUTES = routes({
  listJobs: {
    method: 'get',
    path: '/api/v1/jobs',
    summary:
      'Jobs, newest first. A search such as `type:mail tag:import-7 error:ECONNREFUSED since:1h` looks at a limited number of jobs per page, and says how far it has looked.',
    role: 'viewer',
    needs: 'inspection',
    query: z.strictObject({
      state: z.enum(JOB_STATES).optional(),
      type: typeName.optional(),
      search: search.optional(),
      cursor: cursor.optional(),
      limit,
    }),
    answer: searchedPage(JobSummary),
  },
  showJob: {
    method: 'get',
    path: '/api/v1/jobs/{id}',
    summary: 'One job with its history, its dependencies, an explanation and its audit.',
    role: 'viewer',
    needs: 'inspection',
    params,
    answer: z.object({
      job: JobDetail,
      history: z.array(JobEvent),
      /** Its predecessors, and theirs, as far as they are stored. */
      graph: z.array(GraphNode),
      explanation: Explanation,
      audit: z.array(AuditEntry),
    }),
  },
  showJobFlow: {
    method: 'get',
    path: '/api/v1/jobs/{id}/flow',
    summary:
      'A job with all jobs that it comes after, directly or not, and all that come after it: at most 201. `cut`: there are more.',
    role: 'viewer',
    needs: 'listingByState',
    params,
    answer: z.object({
      /** The job itself is the first. A predecessor that is no longer stored has the state `removed`. */
      nodes: z.array(GraphNode),
      cut: z.boolean(),
    }),
  },
  showJobLogs: {
    method: 'get',
    path: '/api/v1/jobs/{id}/logs',
    summary:
      'What the handler of a job said, oldest first: the newest lines that are kept. `after`: only lines with a higher number.',
    role: 'viewer',
    needs: 'logs',
    params,
    query: z.strictObject({ after: z.coerce.number().int().min(0).default(0) }),
    answer: z.object({
      lines: z.array(LogLine),
      /** How many lines it said that are no longer kept. */
      dropped: z.number(),
    }),
  },
  explainJob: {
    method: 'get',
    path: '/api/v1/jobs/{id}/explain',
    summary: 'Why a job is not running, or what it is doing.',
    role: 'viewer',
    needs: 'inspection',
    params,
    answer: Explanation,
  },
  enqueueJob: {
    method: 'post',
    path: '/api/v1/jobs',
    summary: 'Stores one job. Its payload is checked if this process has the definition.',
    role: 'operator',
    body: z.strictObject({
      type: typeName,
      payload: z.unknown(),
      name: z.string().min(1).max(256).optional(),
      priority: z.number().int().min(1).max(10).optional(),
      attempts: z.number().int().min(1).max(100).optional(),
      delay: Duration.optional(),
      key: z.string().min(1).max(256).optional(),
      latest: z.string().min(1).max(256).optional(),
      tenant: NewTenant.optional(),
      tags: NewTags.optional(),
      reason: reason.optional(),
    }),
    answer: EnqueueReceipt,
    status: 201,
  },
  cancelJob: {
    method: 'post',
    path: '/api/v1/jobs/{id}/cancel',
    summary: 'Cancels a job, also while it runs. 409 if it has finished.',
    role: 'operator',
    needs: 'cancellation',
    params,
    body: ByReason,
    answer: z.object({ id: z.string(), cancelled: z.literal(true) }),
  },
  retryJob: {
    method: 'post',
    path: '/api/v1/jobs/{id}/retry',
    summary: 'Puts a dead letter back into the queue. 409 if the job is not a dead letter.',
    role: 'operator',
    needs: 'deadLetters',
    params,
    body: ByReason.extend({ force: z.boolean().default(false) }),
    answer: z.object({ id: z.string(), replayed: z.literal(true) }),
  },
  runJobAgain: {
    method: 'post',
    path: '/api/v1/jobs/{id}/run-again',
    summary:
      'Stores a new job with the payload, priority, attempts, name, tenant and tags of one that has completed or ended. 409 for a live job and for a dead letter, which is replayed.',
    role: 'operator',
    needs: 'inspection',
    params,
    body: ByReason,
    answer: EnqueueReceipt,
    status: 201,
  },
})
