import type { AnyJob } from './definition.ts'
import { isRecord, type JsonRecord, parseOrText } from './stored-json.ts'

export const REDACTED = '[redacted]'
const TOO_DEEP = '[nested too deeply to be shown]'
const DEPTH_MAX = 100

type JsonSchema = JsonRecord

export interface Shown {
  readonly value: unknown
  /** Whether anything was replaced. */
  readonly redacted: boolean
}

/** Names of secrets, as a whole or as the end of a longer name such as `githubToken`. */
const NAMES = [
  ...['password', 'passwd', 'passphrase', 'secret', 'token', 'authorization'],
  ...['apikey', 'privatekey', 'secretkey', 'accesskey', 'signingkey', 'encryptionkey'],
]
const WHOLE_NAMES = new Set(['credentials', 'credential', 'cookie', 'setcookie', 'pass', 'pwd'])

export function isSensitiveName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return WHOLE_NAMES.has(plain) || NAMES.some((ending) => plain.endsWith(ending))
}

/** A number under a name in the plural is a count, such as `maxTokens`. */
function isSecret(name: string, value: unknown): boolean {
  return isSensitiveName(name) || (typeof value !== 'number' && /s$/i.test(name) && isSensitiveName(name.slice(0, -1)))
}

/**
 * Removes from payloads what their schemas mark as `writeOnly: true` or `format: 'password'`, and everything named like a
 * secret, unless its schema says `writeOnly: false`.
 */
export class Redaction {
  readonly #schemas: ReadonlyMap<string, JsonSchema | 'unreadable'>

  constructor(jobs: readonly AnyJob[]) {
    this.#schemas = new Map(jobs.flatMap((job) => [...described(job, job.type), ...namedOf(job)]))
  }

  /** A stored payload. Anything that is not JSON is shown as text. `name`: of the job within its type, if it is known. */
  payload(type: string, text: string, name: string = UNKNOWN): Shown {
    const schema = this.#schemaOf(type, name)
    // It may contain a secret, and there is no way to tell where.
    if (schema === 'unreadable') return { value: REDACTED, redacted: true }
    return show(parseOrText(text), schema)
  }

  /** Whether a schema says which parts of such a payload are secret. */
  describes(type: string, name: string = UNKNOWN): boolean {
    const schema = this.#schemaOf(type, name)
    return schema !== null && schema !== 'unreadable'
  }

  /** Whether every value at this path is redacted: in payloads of the type, or of all types without one. */
  hides(path: readonly string[], type?: string): boolean {
    const keys = type === undefined ? [UNKNOWN, ...this.#schemas.keys()] : [...this.#keysOf(type)]
    return keys.every((key) => PROBES.every((probe) => this.#shownAt(key, path, probe) !== probe))
  }

  /** A type whose jobs have names has a schema for each. */
  #keysOf(type: string): readonly string[] {
    const named = [...this.#schemas.keys()].filter(
      (key) => key.startsWith(`${type}\n`) && !key.endsWith(`\n${UNKNOWN}`),
    )
    return [type, ...named]
  }

  #shownAt(key: string, path: readonly string[], probe: unknown): unknown {
    const schema = this.#schemas.get(key) ?? null
    if (schema === 'unreadable') return REDACTED
    const { value } = show(nested(path, probe), schema)
    return path.reduce<unknown>((part, name) => partAt(part, name), value)
  }

  #schemaOf(type: string, name: string): JsonSchema | 'unreadable' | null {
    return this.#schemas.get(keyOf(type, name)) ?? this.#schemas.get(type) ?? null
  }

  /** A result or progress, which has no schema: redacted by name. */
  named(value: unknown): unknown {
    return show(value, null).value
  }
}

type Described = [key: string, schema: JsonSchema | 'unreadable']

/** No name of a job has a control character. */
const UNKNOWN = '\n'

function keyOf(type: string, name: string): string {
  return `${type}\n${name}`
}

/** Where the name is not known, as in the audit, any of the schemas may apply. */
function namedOf({ type, byName }: AnyJob): readonly Described[] {
  const named = [...(byName ?? [])].flatMap(([name, job]) => described(job, keyOf(type, name)))
  return named.length === 0 ? [] : [[keyOf(type, UNKNOWN), 'unreadable'], ...named]
}

function described(job: AnyJob, key: string): readonly Described[] {
  const schema = jsonSchemaOf(job)
  return schema === null ? [] : [[key, schema]]
}

/** By Standard JSON Schema, which zod, valibot and others implement. Null where the payload's schema does not. */
export function jsonSchemaOf({ schema }: Pick<AnyJob, 'schema'>): JsonSchema | 'unreadable' | null {
  const standard: unknown = schema?.['~standard']
  const convert = property(property(standard, 'jsonSchema'), 'input')
  if (typeof convert !== 'function') return null
  try {
    // A part that JSON Schema cannot express must not hide marks beside it.
    const found: unknown = convert({ target: 'draft-2020-12', libraryOptions: { unrepresentable: 'any' } })
    return isRecord(found) ? found : 'unreadable'
  } catch {
    return 'unreadable'
  }
}

/** A number under a name in the plural is shown, and a text is not. */
const PROBES: readonly unknown[] = ['probe', 1]

/** A payload with this value at the path. A whole number is a place in a list, unless it is too large for one. */
function nested(path: readonly string[], value: unknown): unknown {
  return path.reduceRight<unknown>((part, name) => {
    const index = /^\d{1,3}$/.test(name) ? Number(name) : null
    return index === null ? { [name]: part } : [...Array.from({ length: index }, () => null), part]
  }, value)
}

function partAt(of: unknown, name: string): unknown {
  return Array.isArray(of) ? of[Number(name)] : property(of, name)
}

function show(value: unknown, schema: JsonSchema | null): Shown {
  const walk = new Walk(schema)
  const shown = walk.show(value, schema === null ? [] : [schema], 0)
  return { value: shown, redacted: walk.hasRedacted }
}

/** Walks a value with all schemas that may describe it: a part that any of them marks is removed. */
class Walk {
  hasRedacted = false
  readonly #root: JsonSchema | null

  constructor(root: JsonSchema | null) {
    this.#root = root
  }

  show(value: unknown, given: readonly JsonSchema[], depth: number): unknown {
    const schemas = this.#expand(given)
    if (schemas.some(isMarked)) return this.#redact()
    if (typeof value !== 'object' || value === null) return value
    if (depth >= DEPTH_MAX) return TOO_DEEP
    if (Array.isArray(value)) {
      return value.map((item, index) => this.show(item, itemSchemas(schemas, index), depth + 1))
    }
    const entries = Object.entries(value).map(([name, part]): [string, unknown] => {
      const parts = this.#expand(propertySchemas(schemas, name))
      const isOpen = parts.some(({ writeOnly }) => writeOnly === false)
      const shown = isSecret(name, part) && !isOpen ? this.#redact() : this.show(part, parts, depth + 1)
      return [name, shown]
    })
    return Object.fromEntries(entries)
  }

  #redact(): string {
    this.hasRedacted = true
    return REDACTED
  }

  /** The schemas with those they refer to and consist of, each once. */
  #expand(schemas: readonly JsonSchema[]): readonly JsonSchema[] {
    const all = new Set<JsonSchema>()
    const add = (schema: unknown): void => {
      if (!isRecord(schema) || all.has(schema)) return
      all.add(schema)
      if (typeof schema.$ref === 'string') add(this.#find(schema.$ref))
      for (const word of ['anyOf', 'oneOf', 'allOf']) for (const part of listOf(schema[word])) add(part)
    }
    for (const schema of schemas) add(schema)
    return [...all]
  }

  #find(reference: string): unknown {
    if (!reference.startsWith('#')) return null
    const names = reference.slice(1).split('/').slice(1)
    const plain = names.map((name) => decodeURIComponent(name).replace(/~1/g, '/').replace(/~0/g, '~'))
    return plain.reduce<unknown>((found, name) => property(found, name), this.#root)
  }
}

function isMarked({ writeOnly, format }: JsonSchema): boolean {
  return writeOnly === true || format === 'password'
}

function itemSchemas(schemas: readonly JsonSchema[], index: number): readonly JsonSchema[] {
  return schemas.flatMap(({ items, prefixItems }) => [listOf(prefixItems)[index], items].filter(isRecord))
}

function propertySchemas(schemas: readonly JsonSchema[], name: string): readonly JsonSchema[] {
  return schemas.flatMap(({ properties, additionalProperties, patternProperties }) => {
    const patterns = isRecord(patternProperties) ? Object.values(patternProperties) : []
    return [property(properties, name), additionalProperties, ...patterns].filter(isRecord)
  })
}

function property(of: unknown, name: string): unknown {
  return isRecord(of) && Object.hasOwn(of, name) ? of[name] : undefined
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function isPlaceholder(value: unknown): boolean {
  return value === REDACTED || value === TOO_DEEP
}

/** Whether a payload still has a placeholder, which would be stored as the value. */
export function hasPlaceholder(payload: unknown): boolean {
  const left: unknown[] = [payload]
  while (left.length > 0) {
    const value = left.pop()
    if (isPlaceholder(value)) return true
    if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) left.push(part)
  }
  return false
}
