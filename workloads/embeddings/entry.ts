import type { StandardSchemaV1 } from '@standard-schema/spec'
import { OptionError } from '../../src/errors.ts'
import { checkKey } from '../../src/job/options.ts'

export const ENTRY_TYPES = ['guideline', 'knowledge', 'tool'] as const
export type EntryType = (typeof ENTRY_TYPES)[number]

/** What a caller hands over: a version of an entry that is to be embedded. */
export interface EmbeddingInput {
  readonly entryType: EntryType
  readonly entryId: string
  readonly versionId: string
  readonly content: string
  /** The order of versions, from 1. Left out, the queue counts: then the order is that of the `enqueue` calls. */
  readonly seq?: number
}

/** A version with its place in the order: what the queue keeps. */
export type EntryVersion = Required<EmbeddingInput>

/** A version and what has become of it so far. */
export interface EmbeddingJob extends EntryVersion {
  /** Runs so far. */
  readonly attempts: number
  /** Why the last run failed. */
  readonly lastError?: string
}

/** Two types with the same id do not collide: no type contains a colon. */
export function entryKey(entryType: EntryType, entryId: string): string {
  return `${entryType}:${entryId}`
}

/** Throws an OptionError for what could never be embedded; nothing is queued then. */
export function checkInput(input: EmbeddingInput): void {
  if (!isEntryType(input.entryType)) {
    throw new OptionError(`'entryType' is '${input.entryType}'; give one of ${ENTRY_TYPES.join(', ')}`)
  }
  for (const name of ['entryId', 'versionId'] as const) {
    const value: unknown = input[name]
    if (typeof value !== 'string' || value === '') throw new OptionError(`'${name}' must be text and not empty`)
  }
  if (typeof input.content !== 'string') throw new OptionError(`'content' must be text`)
  if (input.seq !== undefined && (!Number.isSafeInteger(input.seq) || input.seq < 1)) {
    throw new OptionError(`'seq' is ${input.seq}; give a whole number from 1, or leave it out and the queue counts`)
  }
  checkKey(entryKey(input.entryType, input.entryId), 'latest')
}

function isEntryType(value: unknown): value is EntryType {
  return ENTRY_TYPES.some((type) => type === value)
}

function isVersion(value: unknown): value is EntryVersion {
  if (typeof value !== 'object' || value === null) return false
  const field = (name: string): unknown => Reflect.get(value, name)
  const texts = ['entryId', 'versionId', 'content'].every((name) => typeof field(name) === 'string')
  return texts && isEntryType(field('entryType')) && typeof field('seq') === 'number'
}

/** The payload of the queue's jobs. */
export const versionSchema: StandardSchemaV1<EntryVersion> = {
  '~standard': {
    version: 1,
    vendor: 'millrace',
    validate: (value) =>
      isVersion(value) ? { value } : { issues: [{ message: 'not a version of an entry to be embedded' }] },
  },
}

/** The stored text is the queue's own, so anything else than a version in it is a defect. */
export function readVersion(payload: string): EntryVersion {
  const value: unknown = JSON.parse(payload)
  if (isVersion(value)) return value
  throw new TypeError('a job of the embedding queue holds something that is not a version')
}
