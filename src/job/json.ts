/** What JSON would lose or change without a word, and where it is. */
export interface Loss {
  /** Such as `a.b[0]`; empty for the value itself. */
  readonly path: string
  /** Such as `a Map`. */
  readonly what: string
}

/** Deeper than anybody writes by hand, and shallow enough for every parser that reads it. */
export const DEPTH_MAX = 1_000

/** Of a place that deep the first steps say enough. */
const PATH_MAX = 100

interface Rule {
  /** Objects of classes without a `toJSON`, undefined in arrays and methods are taken as JSON takes them. */
  readonly isLenient: boolean
}

/**
 * The first value that JSON would not give back, or null. A property that is undefined is left out, as JSON does; what
 * has a `toJSON`, such as a Date, is what that returns.
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

/** Most values are: they need no call of their own. */
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

/** Null for a plain object, of whatever realm; otherwise the name of its class. */
function kindOf(value: object): string | null {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return null
  if (Object.getPrototypeOf(prototype) === null) return null
  const made: unknown = Reflect.get(value, 'constructor')
  return typeof made === 'function' && made.name !== '' ? made.name : 'a class without a name'
}

/** Whether JSON does not see what it holds. */
function isOpaque(value: object): boolean {
  if (value instanceof Map || value instanceof Set || value instanceof WeakMap || value instanceof WeakSet) return true
  return value instanceof Promise || value instanceof Error || value instanceof RegExp
}

function within(step: string, { path, what }: Loss): Loss {
  return { path: `${step}${path}`, what }
}
