import { createHash } from 'node:crypto'

/** The namespace UUID of these ids. Another one would give every stored vector another id. */
const MILLRACE = Buffer.from('6f1c2c1e0d7a4c0f9a3b5d2e8f471b60', 'hex')

/**
 * A UUID of version 5: the same parts give the same id in every process, so that a job that runs again writes the same rows.
 * The parts are kept apart, so ('a', 'bc') and ('ab', 'c') are different ids.
 *
 * @example
 * stableUuid('documents', 'readme') // the id of the vector of the source 'readme' in the namespace 'documents'
 */
export function stableUuid(...parts: readonly string[]): string {
  const bytes = createHash('sha1').update(MILLRACE).update(JSON.stringify(parts)).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(text: string): boolean {
  return UUID.test(text)
}
