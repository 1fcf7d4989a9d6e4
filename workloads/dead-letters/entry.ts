import { OptionError } from '../../src/errors.ts'
import type { JobView, StoredOptions, Tenant } from '../../src/job/job.ts'

export interface EntryError {
  readonly message: string
  readonly stack?: string
  readonly code?: string
}

/** A dead letter under the names of document A, with what a retry needs to lose nothing (X034). */
export interface DeadLetterEntry {
  /** A UUID: that of the job's id, so a job that is moved twice is one entry (X072). */
  readonly id: string
  readonly originalJobId: string
  readonly jobType: string
  readonly jobData: unknown
  readonly error: EntryError
  /** Starts that were made. */
  readonly attempts: number
  readonly failedAt: Date
  readonly tenant?: Tenant
  readonly priority: number
  readonly payloadVersion: number
  readonly options: StoredOptions | null
  /** The job that a retry made of it. */
  readonly retriedAs: string | null
}

export interface EntryFilter {
  readonly jobType?: string
  readonly orgId?: string
  readonly failedBefore?: Date
  /** 100 unless told. */
  readonly limit?: number
}

export function toEntry(view: JobView, retriedAs: string | null): DeadLetterEntry {
  const { error, tenant } = view
  return {
    id: uuidOf(view.id),
    originalJobId: view.id,
    jobType: view.type,
    jobData: JSON.parse(view.payload),
    error: {
      message: error?.message ?? 'no error recorded',
      ...(error?.stack != null && { stack: error.stack }),
      ...(error?.code != null && { code: error.code }),
    },
    attempts: view.attempt,
    failedAt: new Date(view.completedAtMs ?? view.updatedAtMs),
    ...(tenant !== null && { tenant }),
    priority: view.priority,
    payloadVersion: view.payloadVersion,
    options: view.options,
    retriedAs,
  }
}

const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A ULID and a UUID are the same 128 bits, written differently. */
export function uuidOf(jobId: string): string {
  if (!ULID.test(jobId))
    throw new OptionError(`job id '${jobId}' is no ULID, so it has no UUID; enqueue with Millrace's ids`)
  let bits = 0n
  for (const letter of jobId) bits = bits * 32n + BigInt(LETTERS.indexOf(letter))
  const hex = bits.toString(16).padStart(32, '0')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Null for what is no UUID. */
export function jobIdOf(uuid: string): string | null {
  if (!UUID.test(uuid)) return null
  let bits = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let id = ''
  for (let place = 0; place < 26; place += 1) {
    id = `${LETTERS[Number(bits % 32n)]}${id}`
    bits /= 32n
  }
  return id
}
