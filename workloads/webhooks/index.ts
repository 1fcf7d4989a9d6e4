export { FAILURE_WINDOW_MS } from './bookkeeping.ts'
export {
  type DispatchOptions,
  HTTP_TIMEOUT_MS,
  type WebhookDispatchResult,
  WebhookDispatchWorker,
  WebhookFailure,
} from './dispatch-worker.ts'
export { webhookRoutes } from './http/routes.ts'
export { type WebhookMetrics, webhookMetrics } from './metrics.ts'
export { dispatchPayload, type WebhookDispatchData } from './payload.ts'
export type {
  DeliveryRecord,
  HttpClient,
  HttpRequest,
  HttpResponse,
  PriorDelivery,
  StatsUpdate,
  Webhook,
  WebhookRepositoryPort,
} from './port.ts'
export type { Published, PublishedDelivery, PublishOptions } from './publish.ts'
export { isPublicAddress } from './sending/addresses.ts'
export { ForbiddenAddress, HttpError } from './sending/errors.ts'
export { type GuardedHttp, type GuardedHttpOptions, guardedHttp, type Resolve } from './sending/guarded-http.ts'
export { newSecret, type SignedMessage, sign } from './signing.ts'
export type { DeliveryFilter, Removed, WebhookDelivery } from './store/deliveries.ts'
export type { WebhookEndpoint } from './store/endpoint.ts'
export { type EndpointChange, type EndpointWithSecret, type NewEndpoint, WebhookEndpoints } from './store/endpoints.ts'
export { WebhookRepository } from './store/repository.ts'
export { webhooksSchema } from './store/schema.ts'
export type { TestResult } from './test-event.ts'
export { type ReceivedWebhook, type VerifyOptions, verifyWebhook, WebhookVerificationError } from './verify.ts'
export { openWebhooks, type Webhooks, type WebhooksOptions, type WebhooksSettings } from './webhooks.ts'
