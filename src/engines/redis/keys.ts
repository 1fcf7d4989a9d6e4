/**
 * Every key that the engine touches. BullMQ's own are `{prefix}:{queue}:{name}` and `{prefix}:{queue}:{jobId}`; ours have
 * an empty part in the middle, so that they can never be a queue, a job or a key of BullMQ's.
 */

/** A type may hold ':', a BullMQ queue may not; '/' is in no type. */
export function queueOf(type: string): string {
  return type.replaceAll(':', '/')
}

export function typeOf(queue: string): string {
  return queue.replaceAll('/', ':')
}

export interface Keys {
  readonly prefix: string
  /** Set of queues that Millrace has met: what «every type» means. */
  readonly types: string
  /** Sorted set of `{id}:{queue}`, all of score 0: jobs by id, so that one is found and pages are cut without a walk. */
  readonly index: string
  /** Hash: idempotency key → `{queue}:{id}` of the live job that has it. */
  readonly keys: string
  /** List of audit entries as JSON, the oldest first; the position is the number of the entry. */
  readonly audit: string
  /** Hash: name → JSON of the schedule. */
  readonly schedules: string
  /** Hash: type → JSON of its pause. */
  readonly paused: string
  /** The prefix of heartbeat keys, which have the format of the escrow workers. */
  readonly presence: string
  /** Hash: queue → how long its leases are, for when a step of the server's clock has ended them. */
  readonly leases: string
  /** Where a holder hears that its job was cancelled. */
  readonly lost: string
  office(office: string): string
  /** List of a portion of a large batch that is not published yet; expires unless the batch is committed. */
  staged(batch: string, portion: number): string
}

export function keysOf(prefix: string): Keys {
  const own = (name: string): string => `${prefix}::${name}`
  return Object.freeze({
    prefix,
    types: own('types'),
    leases: own('leases'),
    index: own('index'),
    keys: own('keys'),
    audit: own('audit'),
    schedules: own('schedules'),
    paused: own('paused'),
    presence: own(''),
    lost: own('lost'),
    office: (office: string) => own(`office:${office}`),
    staged: (batch: string, portion: number) => own(`staged:${batch}:${portion}`),
  })
}

const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/

/** The id under which the rest of Millrace knows a job: BullMQ's own numbers are unique only within their queue. */
export function publicId(type: string, bullId: string): string {
  return ULID.test(bullId) ? bullId : `${type}#${bullId}`
}

/** BullMQ's id of a job whose type is known. */
export function bullId(type: string, id: string): string {
  return id.startsWith(`${type}#`) ? id.slice(type.length + 1) : id
}

/** The type and BullMQ's id, where the id itself tells them. */
export function partsOf(id: string): { readonly type: string; readonly bullId: string } | null {
  const at = id.indexOf('#')
  return at < 0 ? null : { type: id.slice(0, at), bullId: id.slice(at + 1) }
}
