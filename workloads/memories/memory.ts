/** What a memory is, whose it is, and which values it may have. */
import { OptionError } from '../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { toIso } from '../../src/time/iso.ts'
import { isStorable, storableJson, storableText } from '../database/text.ts'

/** Every read and write names it: nothing of one user is visible to another. */
export interface Owner {
  readonly workspaceId: string
  readonly userId: string
}

export interface Memory extends Owner {
  /** A UUID. */
  readonly id: string
  /** `episodic` for what happened, `semantic` for what was concluded from it, or a word of your own. */
  readonly type: string
  readonly content: string
  /** 0 to 1. */
  readonly importance: number
  /** The id of its vector; null until that is stored. */
  readonly embeddingId: string | null
  /** Where it comes from, such as `conversation`; `consolidation` for what a consolidation wrote. */
  readonly sourceType: string
  readonly sourceId: string | null
  readonly metadata: Readonly<Record<string, unknown>>
  /** Counts the changes of the text, from 1. */
  readonly version: number
  readonly createdAt: Date
  readonly updatedAt: Date
  /** From then on `memory-cleanup` removes it. */
  readonly expiresAt: Date | null
}

export interface NewMemory extends Owner {
  readonly content: string
  /** A UUID, so that saving again changes the same memory; default: a new one. */
  readonly id?: string
  /** Default: `episodic`. */
  readonly type?: string
  /** 0 to 1; default: 0.5. */
  readonly importance?: number
  /** Default: `user`. */
  readonly sourceType?: string
  readonly sourceId?: string | null
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly expiresAt?: Date | null
}

const NAMES: OptionNames<NewMemory> = {
  ...{ workspaceId: true, userId: true, content: true, id: true, type: true, importance: true },
  ...{ sourceType: true, sourceId: true, metadata: true, expiresAt: true },
}

/** A memory is a remark, not a document; a tsvector of Postgres and a prompt of a model are limited as well. */
export const CONTENT_CHARS_MAX = 10_000
const METADATA_CHARS_MAX = 10_000
const NAME_CHARS_MAX = 200
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const TYPE = /^[a-z][a-z0-9_-]{0,39}$/

export function checkOwner({ workspaceId, userId }: Owner): Owner {
  return { workspaceId: checkName(workspaceId, 'workspaceId'), userId: checkName(userId, 'userId') }
}

/** The values of a row, with defaults filled in. */
export function checkMemory(given: NewMemory) {
  refuseUnknown(given, NAMES, 'a memory')
  const { id = crypto.randomUUID(), type = 'episodic', importance = 0.5, sourceType = 'user' } = given
  if (!UUID.test(id))
    throw new OptionError(`the id '${shown(id)}' is not a UUID in small letters; leave it out for a new one`)
  if (!TYPE.test(type)) {
    throw new OptionError(
      `the type '${shown(type)}' is not a word of small letters; give 'episodic', 'semantic' or your own`,
    )
  }
  return {
    ...checkOwner(given),
    ...{ id, type, sourceType: checkName(sourceType, 'sourceType') },
    content: checkContent(given.content),
    importance: checkImportance(importance),
    sourceId: given.sourceId === undefined || given.sourceId === null ? null : checkName(given.sourceId, 'sourceId'),
    metadata: metadataText(given.metadata ?? {}),
    expiresAt: given.expiresAt === undefined || given.expiresAt === null ? null : expiryText(given.expiresAt),
  }
}

export type CheckedMemory = ReturnType<typeof checkMemory>

function checkName(value: unknown, name: string): string {
  const isName = typeof value === 'string' && value.trim() !== '' && value.length <= NAME_CHARS_MAX
  // A database would replace half a surrogate pair, and two owners would become one.
  if (isName && isStorable(value)) return value
  throw new OptionError(
    `'${name}' must be a text of 1 to ${NAME_CHARS_MAX} characters, without NUL and halves of surrogate pairs`,
  )
}

function checkContent(content: unknown): string {
  if (typeof content !== 'string' || content.trim() === '') {
    throw new OptionError(`'content' is empty; give the text of the memory`)
  }
  if (content.length > CONTENT_CHARS_MAX) {
    throw new OptionError(
      `'content' has ${content.length} characters and may have ${CONTENT_CHARS_MAX}; split it into several memories`,
    )
  }
  return storableText(content)
}

export function checkImportance(importance: unknown): number {
  if (typeof importance === 'number' && importance >= 0 && importance <= 1) return importance
  throw new OptionError(`'importance' is ${shown(importance)}; give a number from 0 to 1`)
}

function metadataText(metadata: unknown): string {
  const isObject = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)
  const text = isObject ? storableJson(metadata) : ''
  if (text === '') throw new OptionError(`'metadata' is not an object; give one such as { channel: 'mail' }`)
  if (text.length <= METADATA_CHARS_MAX) return text
  throw new OptionError(`'metadata' has ${text.length} characters as JSON and may have ${METADATA_CHARS_MAX}`)
}

function expiryText(at: unknown): string {
  const year = at instanceof Date ? at.getUTCFullYear() : Number.NaN
  // Beyond these years times are written with a sign, and would no longer be compared in their order.
  if (at instanceof Date && year >= 0 && year <= 9999) return toIso(at.getTime())
  throw new OptionError(`'expiresAt' is not a valid Date of the years 0 to 9999; give one, or leave it out for never`)
}

/** The start of a value that was refused. */
function shown(value: unknown): string {
  return String(value).slice(0, 50)
}
