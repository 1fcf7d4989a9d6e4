import type { StandardSchemaV1 } from '@standard-schema/spec'
import { OptionError } from '../../src/errors.ts'
import { checkKey } from '../../src/job/options.ts'

export const ENTRY_TYPES = ['guideline', 'knowledge', 'tool'] as const
export type EntryType = (typeof ENTRY_TYPES)[number]

/** A version of an entry to embed. */
export interface EmbeddingInput {
  readonly entryType: EntryType
  readonly entryId: string
  readonly versionId: string
  readonly content: string
  /** The order of versions, from 1. Default: the order of the `enqueue` calls. */
  readonly seq?: number
}

/** A version with its place in the order. */
export type EntryVersion = Required<EmbeddingInput>

/** A version and its runs so far. */
export interface EmbeddingJob extends EntryVersion {
  /** Runs so far. */
  readonly attempts: number
  /** Why the last run failed. */
  readonly lastError?: string
}

/** No type contains a colon, so keys do not collide. */
export function entryKey(entryType: EntryType, entryId: string): string {
  return `${entryType}:${entryId}`
}

/** Throws an OptionError for input that could never be embedded. */
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

const NO_VERSION = `not a version of an entry; give entryType (${ENTRY_TYPES.join(', ')}), entryId, versionId, content and seq`

/** The payload of the queue's jobs. */
export const versionSchema: StandardSchemaV1<EntryVersion> = {
  '~standard': {
    version: 1,
    vendor: 'millrace',
    validate: (value) => (isVersion(value) ? { value } : { issues: [{ message: NO_VERSION }] }),
  },
}

/** The queue wrote the text itself, so anything but a version is a bug. */
export function readVersion(payload: string): EntryVersion {
  const value: unknown = JSON.parse(payload)
  if (isVersion(value)) return value
  throw new TypeError('a job of the embedding queue holds something that is not a version')
}
