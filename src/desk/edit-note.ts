/** What the audit keeps of an edited payload: hashes, the changed paths, and values where a schema says they are not secret. */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import type { ChangedPart, EditNote } from '../engine/dead-letters.ts'
import type { Redaction } from '../job/redaction.ts'
import { canonicalJson, isRecord, parseOrText } from '../job/stored-json.ts'

/** An entry stays for ever, so it must not grow with the payload. */
const PARTS_MAX = 100
const VALUE_CHARS_MAX = 200

/**
 * A fast hash of a short secret is guessed in no time, with or without a salt. One of these takes 16 MiB and some 30 ms,
 * which is little for an edit by hand and much for each guess.
 */
const COST = { logN: 14, r: 8, p: 1 } as const
const HASH_BYTES = 32

/** Both hashes have the same salt, so equal payloads have equal hashes within an entry, and only there. */
export async function noteEdit(
  redaction: Redaction,
  { type, name }: { readonly type: string; readonly name?: string | undefined },
  texts: { readonly before: string; readonly after: string },
): Promise<EditNote> {
  const salt = randomBytes(16)
  const before = parseOrText(texts.before)
  const after = parseOrText(texts.after)
  const changes = new Changes(redaction.describes(type, name))
  const shown = (text: string): unknown => redaction.payload(type, text, name).value
  changes.compare('', { raw: before, shown: shown(texts.before) }, { raw: after, shown: shown(texts.after) })
  return { before: await hashOf(before, salt), after: await hashOf(after, salt), ...changes.found() }
}

/** Whether the hash of an entry is of this payload. False for text that is not such a hash. */
export async function isHashOf(hash: string, payload: unknown): Promise<boolean> {
  const [name, logN, r, p, salt = '', expected = ''] = hash.split('$')
  const isKnown = name === 'scrypt' && [logN, r, p].join() === [COST.logN, COST.r, COST.p].join()
  if (!isKnown) return false
  const found = Buffer.from(await hashOf(payload, Buffer.from(salt, 'base64url')))
  const given = Buffer.from(['scrypt', logN, r, p, salt, expected].join('$'))
  return found.length === given.length && timingSafeEqual(found, given)
}

async function hashOf(payload: unknown, salt: Buffer): Promise<string> {
  const { logN, r, p } = COST
  const digest = await derive(canonicalJson(payload), salt)
  return ['scrypt', logN, r, p, salt.toString('base64url'), digest.toString('base64url')].join('$')
}

function derive(text: string, salt: Buffer): Promise<Buffer> {
  const { logN, r, p } = COST
  return new Promise((resolve, reject) => {
    scrypt(text, salt, HASH_BYTES, { N: 2 ** logN, r, p }, (error, key) => (error ? reject(error) : resolve(key)))
  })
}

/** A value, and the same as it may be shown. */
interface Side {
  readonly raw: unknown
  readonly shown: unknown
}

const SIDES = ['before', 'after'] as const
const ABSENT: Side = { raw: undefined, shown: undefined }

class Changes {
  readonly #withValues: boolean
  readonly #parts: ChangedPart[] = []
  #count = 0

  constructor(withValues: boolean) {
    this.#withValues = withValues
  }

  found(): Pick<EditNote, 'changed' | 'unnamed'> {
    return { changed: this.#parts, unnamed: this.#count - this.#parts.length }
  }

  compare(path: string, before: Side, after: Side): void {
    const isSecret = isHidden(before) || isHidden(after)
    const names = isSecret ? null : namesOf(before.raw, after.raw)
    for (const name of names ?? []) this.compare(`${path}/${escaped(name)}`, partOf(before, name), partOf(after, name))
    if (names !== null || canonicalJson(before.raw) === canonicalJson(after.raw)) return
    this.#add(path, isSecret ? [ABSENT, ABSENT] : [before, after])
  }

  #add(path: string, [before, after]: readonly [Side, Side]): void {
    this.#count += 1
    if (this.#parts.length >= PARTS_MAX) return
    const kept: { before?: unknown; after?: unknown } = {}
    const long: (typeof SIDES)[number][] = []
    for (const side of SIDES) {
      const { shown } = { before, after }[side]
      if (!this.#withValues || shown === undefined) continue
      if (canonicalJson(shown).length <= VALUE_CHARS_MAX) kept[side] = shown
      else long.push(side)
    }
    this.#parts.push({ path, ...kept, ...(long.length > 0 && { long }) })
  }
}

/** Redaction replaces a part by another value, and keeps the form of everything around it. */
function isHidden({ raw, shown }: Side): boolean {
  return typeof raw === 'object' && raw !== null ? typeof shown !== 'object' : raw !== shown
}

/** The names in either; null where they are not two objects or two arrays. */
function namesOf(before: unknown, after: unknown): ReadonlySet<string> | null {
  const areLists = Array.isArray(before) && Array.isArray(after)
  if (!areLists && !(isRecord(before) && isRecord(after))) return null
  return new Set([...Object.keys(before), ...Object.keys(after)])
}

function partOf({ raw, shown }: Side, name: string): Side {
  const read = (of: unknown): unknown =>
    typeof of === 'object' && of !== null && Object.hasOwn(of, name) ? Reflect.get(of, name) : undefined
  return { raw: read(raw), shown: read(shown) }
}

/** As RFC 6901 writes names. */
function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
