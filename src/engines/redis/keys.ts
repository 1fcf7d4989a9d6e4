/**
 * Every key that the engine uses. BullMQ's are `{prefix}:{queue}:{name}` and `{prefix}:{queue}:{jobId}`; ours have an empty
 * part in the middle, so they never collide with a queue, a job or a key of BullMQ.
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
  /** Set of queues that Millrace has seen: what «every type» means. */
  readonly types: string
  /** Sorted set of `{id}:{queue}`, all of score 0: finds jobs by id and pages without a scan. */
  readonly index: string
  /** Hash: idempotency key → `{queue}:{id}` of the live job that has it. */
  readonly keys: string
  /** List of audit entries as JSON, oldest first; the position is the number of the entry. */
  readonly audit: string
  /** Hash: queue → length of its leases, for when a step of the server's clock ends them. */
  readonly leases: string
  /** Channel that announces cancelled jobs to their holders. */
  readonly lost: string
  /** Channel that announces that a type was paused or resumed. */
  readonly pauses: string
  /** List: a chunk of a large batch that is not published yet; expires unless the batch is committed. */
  staged(batch: string, chunk: number): string
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
    lost: own('lost'),
    pauses: own('pauses'),
    staged: (batch: string, chunk: number) => own(`staged:${batch}:${chunk}`),
  })
}

/** On a cluster: the prefix of a type's keys. The braces put all of them on one slot. */
export function prefixOfType(prefix: string, type: string): string {
  return `${prefix}:{${queueOf(type)}}`
}

/** On a cluster: the prefix of what belongs to no type. No type is called ':'. */
export function sharedPrefix(prefix: string): string {
  return `${prefix}:{:}`
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

/** The type and BullMQ's id, if the id contains them. */
export function partsOf(id: string): { readonly type: string; readonly bullId: string } | null {
  const at = id.indexOf('#')
  return at < 0 ? null : { type: id.slice(0, at), bullId: id.slice(at + 1) }
}
