/**
 * An array of texts as Postgres reads it. The driver would look at every character of every element; on the way of each
 * job that is felt, and most arrays need no escaping at all.
 */
export function arrayOf(values: readonly string[]): string {
  if (values.length === 0) return '{}'
  const text = values.join('')
  const needsCare = text.includes('"') || text.includes('\\')
  return `{"${(needsCare ? values.map(escaped) : values).join('","')}"}`
}

/** An array of finite numbers as Postgres reads it, for the same reason. */
export function arrayOfNumbers(values: readonly number[]): string {
  return `{${values.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll(/["\\]/g, '\\$&')
}
