/** The payload of a `webhook-dispatch` job. */
import { z } from 'zod'

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
/** Printable ASCII: a line break would begin a header of its own. */
const HEADER_VALUE = /^[\t\x20-\x7e]{0,8192}$/

const headers = z.record(
  z.string().regex(HEADER_NAME, 'is not the name of a header'),
  z.string().regex(HEADER_VALUE, 'is not the value of a header'),
)

/** Both are sent in headers. One that a store cannot look up would also fail the jobs that are looked up with it. */
const id = z.string().regex(/^[\x20-\x7e]{1,128}$/, 'is not 1 to 128 printable characters of ASCII')

/** What is enqueued and stored is JSON already. `z.json()` would copy it without the keys `__proto__`. */
const json = z.custom<z.core.util.JSONType>((value) => value !== undefined, 'is missing')

export const dispatchPayload = z.strictObject({
  webhookId: id,
  /** The JSON body that is sent. */
  payload: json,
  /** More headers. Those that the worker sets itself win. */
  headers: headers.exactOptional(),
  /** Sent as X-Signature where the endpoint has no secret. Otherwise the request is signed when it is sent. */
  signature: z.string().regex(HEADER_VALUE, 'is not the value of a header').exactOptional(),
  /** Default: the job's id. */
  deliveryId: id.exactOptional(),
  event: z
    .string()
    .regex(/^[^\p{Cc}\p{Cs}]{1,128}$/u, 'is not 1 to 128 printable characters')
    .exactOptional(),
  /** Sent even if the delivery has succeeded before. */
  isRedelivery: z.boolean().exactOptional(),
})

export type WebhookDispatchData = z.output<typeof dispatchPayload>
