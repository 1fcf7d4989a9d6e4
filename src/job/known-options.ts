import { OptionError } from '../errors.ts'

/** Every option's name. The compiler insists that none is missing and none is too many. */
export type OptionNames<Options> = { readonly [Name in keyof Required<Options>]: true }

/** What other queues call it. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  tx: 'within',
  trx: 'within',
  transaction: 'within',
  retries: 'attempts',
  maxRetries: 'attempts',
  maxAttempts: 'attempts',
  jobId: 'key',
  idempotencyKey: 'key',
  runAt: 'at',
  startAfter: 'delay',
  handler: 'run',
  schema: 'payload',
}

/**
 * Refuses an unknown option name, which would silently have no effect. A name whose value is undefined is ignored. `of` names
 * the call in the message, such as `enqueue`.
 */
export function refuseUnknown<Options extends object>(
  options: Options,
  known: OptionNames<NoInfer<Options>>,
  of: string,
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new OptionError(`the options of ${of} are not an object; give { ${Object.keys(known).join(', ')} }`)
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(known, name)) continue
    const near = nearest(name, Object.keys(known))
    const names = Object.keys(known).join(', ')
    const hint = near === null ? `the options are ${names}` : `did you mean '${near}'? The options are ${names}`
    throw new OptionError(`'${name}' is not an option of ${of}; ${hint}`)
  }
}

/** The known name that was probably meant. Null if none is close. */
export function nearest(name: string, known: readonly string[]): string | null {
  const plain = plainOf(name)
  const same = known.find((one) => plainOf(one) === plain)
  if (same !== undefined) return same
  for (const [other, ours] of Object.entries(ELSEWHERE)) {
    if (plainOf(other) === plain && known.includes(ours)) return ours
  }
  const distances = known.map((one) => ({ one, distance: editDistance(plain, plainOf(one)) }))
  const [best] = distances.sort((a, b) => a.distance - b.distance)
  // With more than a third of its letters changed, it is another name.
  return best !== undefined && best.distance * 3 <= Math.max(plain.length, 3) ? best.one : null
}

function plainOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
}

/** The Levenshtein distance. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1]
    for (const [at, otherLetter] of [...other].entries()) {
      const exchanged = (row[at] ?? 0) + (letter === otherLetter ? 0 : 1)
      next.push(Math.min(exchanged, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Required properties stay; those that may be undefined become optional. */
export type WithoutUndefined<Values> = {
  [Name in keyof Values as undefined extends Values[Name] ? never : Name]: Values[Name]
} & {
  [Name in keyof Values as undefined extends Values[Name] ? Name : never]?: Exclude<Values[Name], undefined>
}

/** A copy without the properties whose value is undefined: under exactOptionalPropertyTypes an option is left out or set. */
export function omitUndefined<Values extends object>(values: Values): WithoutUndefined<Values> {
  // Exactly the undefined values are gone, which is what the type says.
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as WithoutUndefined<Values>
}
