/** A value that JSON would silently lose or change, and its place. */
export interface Loss {
  /** Such as `a.b[0]`; empty for the value itself. */
  readonly path: string
  /** Such as `a Map`. */
  readonly what: string
}

/** Deeper than hand-written data, and shallow enough for every parser. */
export const DEPTH_MAX = 1_000

/** Longer paths are cut. */
const PATH_MAX = 100

interface Rule {
  /** Objects of classes without a `toJSON`, undefined in arrays and methods are taken as JSON takes them. */
  readonly isLenient: boolean
}

/**
 * The first value that JSON would not return unchanged, or null. Undefined properties are dropped, as JSON does. A value
 * with `toJSON`, such as a Date, counts as what that returns.
 */
export function findLoss(value: unknown, rule: Rule = { isLenient: false }): Loss | null {
  const loss = lossIn(value, rule, '', 0)
  if (loss === null) return null
  const path = loss.path.replace(/^\./, '')
  return { what: loss.what, path: path.length > PATH_MAX ? `${path.slice(0, PATH_MAX)}...` : path }
}

function lossIn(value: unknown, rule: Rule, key: string, depth: number): Loss | null {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return null
    case 'number':
      return Number.isFinite(value) ? null : { path: '', what: String(value) }
    case 'object':
      return value === null ? null : lossInObject(value, rule, key, depth)
    case 'bigint':
      return { path: '', what: 'a BigInt' }
    default:
      return { path: '', what: typeof value === 'undefined' ? 'undefined' : `a ${typeof value}` }
  }
}

function lossInObject(value: object, rule: Rule, key: string, depth: number): Loss | null {
  if (depth >= DEPTH_MAX) return { path: '', what: `more than ${DEPTH_MAX} levels, or a circle` }
  if (Array.isArray(value)) return lossInArray(value, rule, depth)
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    if (value instanceof Date && Number.isNaN(value.getTime())) return { path: '', what: 'an invalid Date' }
    const given: unknown = value.toJSON(key)
    return given === value ? null : lossIn(given, rule, key, depth + 1)
  }
  const kind = kindOf(value)
  if (kind !== null && !(rule.isLenient && !isOpaque(value)))
    return { path: '', what: `an object of the class ${kind}` }
  for (const name in value) {
    // JSON takes own properties only.
    if (!Object.hasOwn(value, name)) continue
    const part: unknown = Reflect.get(value, name)
    if (part === undefined || (rule.isLenient && typeof part === 'function')) continue
    if (isHarmless(part)) continue
    const loss = lossIn(part, rule, name, depth + 1)
    if (loss !== null) return within(`.${name}`, loss)
  }
  return null
}

/** Most values are, and need no further call. */
function isHarmless(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || value === null
}

function lossInArray(values: readonly unknown[], rule: Rule, depth: number): Loss | null {
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index]
    if (isHarmless(value) || (value === undefined && rule.isLenient)) continue
    const isHole = value === undefined && !(index in values)
    const loss = isHole ? { path: '', what: 'a hole' } : lossIn(value, rule, String(index), depth + 1)
    if (loss !== null) return within(`[${index}]`, loss)
  }
  return null
}

/** Null for a plain object of any realm, otherwise the name of its class. */
function kindOf(value: object): string | null {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return null
  if (Object.getPrototypeOf(prototype) === null) return null
  const made: unknown = Reflect.get(value, 'constructor')
  return typeof made === 'function' && made.name !== '' ? made.name : 'a class without a name'
}

/** Whether JSON cannot see the content. */
function isOpaque(value: object): boolean {
  if (value instanceof Map || value instanceof Set || value instanceof WeakMap || value instanceof WeakSet) return true
  return value instanceof Promise || value instanceof Error || value instanceof RegExp
}

function within(step: string, { path, what }: Loss): Loss {
  return { path: `${step}${path}`, what }
}

type Scalar = string | number | boolean | null | undefined

/**
 * `T` with `never` in place of what JSON would lose. Arrays and objects are compared lazily, so recursive types are fine,
 * and interfaces need no index signature.
 */
type AsJson<T> = unknown extends T
  ? T
  : T extends Scalar
    ? T
    : T extends bigint | symbol | Date | ((...args: never[]) => unknown)
      ? never
      : T extends readonly (infer Item)[]
        ? readonly AsJson<Item>[]
        : { [Key in keyof T]: AsJson<T[Key]> }

/** Names what JSON would lose of `T` and where, for the compiler's message. It looks a few levels deep. */
type LostIn<T, Path extends string = '', Depth extends readonly unknown[] = []> = unknown extends T
  ? never
  : T extends Scalar
    ? never
    : T extends bigint
      ? `a bigint${Path}`
      : T extends Date
        ? `a Date${Path}`
        : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
          ? `a Map or Set${Path}`
          : T extends symbol | ((...args: never[]) => unknown)
            ? `a function or symbol${Path}`
            : Depth['length'] extends 4
              ? never
              : T extends readonly (infer Item)[]
                ? LostIn<Item, `${Path}[]`, [...Depth, unknown]>
                : { [Key in keyof T]-?: LostIn<T[Key], ` at ${Key & string}`, [...Depth, unknown]> }[keyof T]

/**
 * `unknown` when `T` is JSON, otherwise a type that nothing has, whose property says what is wrong.
 * Payloads are stored as JSON: a Date would come back as text, and a bigint cannot be stored at all.
 */
export type JsonOnly<T> = [T] extends [AsJson<T>]
  ? unknown
  : { readonly 'error: a payload must be JSON': `it has ${LostIn<T>}; use a string or a number` }
