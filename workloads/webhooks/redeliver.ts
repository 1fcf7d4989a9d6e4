import type { Mill } from '../../src/client/mill.ts'
import { MillraceError } from '../../src/errors.ts'
import type { JobView } from '../../src/job/job.ts'
import { parseOrText } from '../../src/job/stored-json.ts'
import type { WorkloadDatabase } from '../database/database.ts'
import { JOB_TYPES } from '../framework/job-types.ts'
import { dispatchPayload } from './payload.ts'
import type { PublishedDelivery, Publisher } from './publish.ts'
import { listDeliveries } from './store/deliveries.ts'

export interface RedeliverParts {
  readonly mill: Mill
  readonly publisher: Publisher
  readonly database: WorkloadDatabase
}

/** The job holds the payload, so a delivery can be repeated for as long as one of its jobs is stored. */
export async function redeliver(deliveryId: string, parts: RedeliverParts): Promise<PublishedDelivery> {
  const job = await jobOf(deliveryId, parts)
  const parsed = dispatchPayload.safeParse(parseOrText(job.payload))
  if (!parsed.success || job.type !== JOB_TYPES.WEBHOOK_DISPATCH) {
    throw new MillraceError('ERR_PAYLOAD_INVALID', `job ${job.id} is not a webhook; give the id of a delivery`)
  }
  const payload = { ...parsed.data, deliveryId: parsed.data.deliveryId ?? job.id, isRedelivery: true }
  const tenant = job.tenant === null ? {} : { tenant: job.tenant }
  const [delivery] = await parts.publisher.enqueue([payload], tenant)
  if (delivery === undefined) throw new MillraceError('ERR_STORAGE_FAILED', 'the redelivery was not stored; try again')
  return delivery
}

async function jobOf(deliveryId: string, { mill, database }: RedeliverParts): Promise<JobView> {
  const [recorded] = await listDeliveries(database, { deliveryId, limit: 1 })
  for (const id of new Set([deliveryId, recorded?.jobId ?? deliveryId])) {
    const job = await mill.job(id)
    if (job !== null) return job
  }
  throw new MillraceError(
    'ERR_RECORD_UNKNOWN',
    recorded === undefined
      ? `no delivery has the id '${deliveryId}'; see millrace webhooks deliveries`
      : `the job of delivery '${deliveryId}' was removed, and its payload with it; publish the event again`,
  )
}
