/**
 * The paths of the routes. The contract with its validation would triple the page's size, so the paths are repeated here;
 * the type rejects one that differs from the contract.
 */
import type { RouteId, Routes } from './shapes.ts'

export const PLACES: { readonly [Id in RouteId]: `${Routes[Id]['method']} ${Routes[Id]['path']}` } = {
  showSession: 'get /api/v1/session',
  createLink: 'post /api/v1/links',
  showOverview: 'get /api/v1/overview',
  showHistory: 'get /api/v1/history',
  listQueues: 'get /api/v1/queues',
  showType: 'get /api/v1/queues/{type}',
  drainType: 'post /api/v1/queues/{type}/drain',
  obliterateType: 'post /api/v1/queues/{type}/obliterate',
  listLimits: 'get /api/v1/limits',
  setLimits: 'post /api/v1/queues/{type}/limits',
  resetLimits: 'post /api/v1/queues/{type}/limits/reset',
  pauseQueue: 'post /api/v1/queues/{type}/pause',
  resumeQueue: 'post /api/v1/queues/{type}/resume',
  listWorkers: 'get /api/v1/workers',
  drainWorker: 'post /api/v1/workers/{id}/drain',
  listSchedules: 'get /api/v1/schedules',
  showSchedule: 'get /api/v1/schedules/{name}',
  listScheduleRuns: 'get /api/v1/schedule-runs',
  previewSchedule: 'get /api/v1/schedules/{name}/next',
  previewCron: 'get /api/v1/schedule-preview',
  addSchedule: 'post /api/v1/schedules',
  changeSchedule: 'post /api/v1/schedules/{name}',
  removeSchedule: 'post /api/v1/schedules/{name}/remove',
  pauseSchedule: 'post /api/v1/schedules/{name}/pause',
  resumeSchedule: 'post /api/v1/schedules/{name}/resume',
  runSchedule: 'post /api/v1/schedules/{name}/run',
  listAlerts: 'get /api/v1/alerts',
  listTopics: 'get /api/v1/topics',
  listJobs: 'get /api/v1/jobs',
  showJob: 'get /api/v1/jobs/{id}',
  showJobFlow: 'get /api/v1/jobs/{id}/flow',
  showJobLogs: 'get /api/v1/jobs/{id}/logs',
  explainJob: 'get /api/v1/jobs/{id}/explain',
  enqueueJob: 'post /api/v1/jobs',
  cancelJob: 'post /api/v1/jobs/{id}/cancel',
  retryJob: 'post /api/v1/jobs/{id}/retry',
  runJobAgain: 'post /api/v1/jobs/{id}/run-again',
  listDeadLetters: 'get /api/v1/dead-letters',
  groupDeadLetters: 'get /api/v1/dead-letters/groups',
  showDeadLetter: 'get /api/v1/dead-letters/{id}',
  replayDeadLetter: 'post /api/v1/dead-letters/{id}/replay',
  replayDeadLetters: 'post /api/v1/dead-letters/replay',
  discardDeadLetters: 'post /api/v1/dead-letters/discard',
  undoDiscard: 'post /api/v1/dead-letters/{id}/undo',
  purgeDeadLetters: 'post /api/v1/dead-letters/purge',
  eraseJobs: 'post /api/v1/dead-letters/erase',
  listOperations: 'get /api/v1/operations',
  showOperation: 'get /api/v1/operations/{id}',
  stopOperation: 'delete /api/v1/operations/{id}',
  listAudit: 'get /api/v1/audit',
  showJobTables: 'get /api/v1/job-tables',
  requeueStuckRow: 'post /api/v1/job-tables/{table}/rows/{id}/requeue',
  failStuckRow: 'post /api/v1/job-tables/{table}/rows/{id}/fail',
  listWebhooks: 'get /api/v1/webhooks',
  listWebhookDeliveries: 'get /api/v1/webhook-deliveries',
  enableWebhook: 'post /api/v1/webhooks/{id}/enable',
  disableWebhook: 'post /api/v1/webhooks/{id}/disable',
  testWebhook: 'post /api/v1/webhooks/{id}/test',
  redeliverWebhook: 'post /api/v1/webhook-deliveries/{id}/redeliver',
}

type Contract = typeof import('../../../src/http/contract/index.ts')

export const STREAM_PLACE: Contract['STREAM_PATH'] = '/api/v1/events'
export const LOGIN_PLACE: Contract['LOGIN_PATH'] = '/api/v1/login'
export const LOGOUT_PLACE: Contract['LOGOUT_PATH'] = '/api/v1/logout'

type Values = Readonly<Record<string, unknown>>

/** A request's method and address, below the place where the page itself is served. */
export function addressOf(id: RouteId, parts: { readonly params?: Values; readonly query?: Values }) {
  const [method = 'get', path = ''] = PLACES[id].split(' ')
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts.params?.[name] ?? '')))
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parts.query ?? {})) {
    if (value !== undefined && value !== null && value !== '') query.set(name, String(value))
  }
  const search = query.toString()
  return { method: method.toUpperCase(), path: filled + (search === '' ? '' : `?${search}`) }
}
