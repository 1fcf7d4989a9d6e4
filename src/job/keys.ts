import { createHash } from 'node:crypto'
import { checkKey } from './options.ts'

/** Hex digits of the hash that a key carries: 64 bits, ample against accidents, short enough to read. */
const HASH_DIGITS = 16

/**
 * An idempotency key for content that must not stand in the key itself (text from outside, personal data).
 * The same content gives the same key; a nonce makes an intended re-run a different job.
 *
 * @example
 * contentKey('sanitize', conversationId)            // 'sanitize-9f86d081884c7d65'
 * contentKey('sanitize', conversationId, 'again')   // another key
 */
export function contentKey(prefix: string, content: string, nonce?: string): string {
  const subject = nonce === undefined ? content : `${content}:${nonce}`
  const digest = createHash('sha256').update(subject).digest('hex').slice(0, HASH_DIGITS)
  return checkKey(`${prefix}-${digest}`, 'key')
}
