/** Signatures and secrets as Standard Webhooks defines them: HMAC-SHA256 over id, timestamp and body. */
import { createHmac, randomBytes } from 'node:crypto'
import { OptionError } from '../../src/errors.ts'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
const SECRET_BYTES_MIN = 24
const SECRET_BYTES_MAX = 64
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/**
 * A new secret of 256 bits.
 *
 * @example
 * const secret = newSecret() // 'whsec_…'
 */
export function newSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`
}

/** The message never quotes the secret. */
export function checkSecret(secret: string): string {
  keyOf(secret)
  return secret
}

/** The bytes of a secret, with or without the prefix. */
export function keyOf(secret: string): Buffer {
  const text = typeof secret === 'string' && secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const key = Buffer.from(typeof text === 'string' && BASE64.test(text) ? text : '', 'base64')
  if (key.length >= SECRET_BYTES_MIN && key.length <= SECRET_BYTES_MAX) return key
  throw new OptionError(
    `the secret is not ${PREFIX} and ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} bytes in base64; leave it out to get a new one`,
  )
}

export interface SignedMessage {
  /** The delivery's id. */
  readonly id: string
  /** Seconds since the epoch, when it is sent. */
  readonly timestamp: number
  readonly body: string
}

/**
 * One signature for each secret, separated by spaces, as the header `webhook-signature` carries them.
 *
 * @example
 * sign({ id: 'msg_1', timestamp: 1_767_225_600, body: '{}' }, [secret]) // 'v1,…'
 */
export function sign({ id, timestamp, body }: SignedMessage, secrets: readonly string[]): string {
  const content = `${id}.${timestamp}.${body}`
  return secrets.map((secret) => `v1,${createHmac('sha256', keyOf(secret)).update(content).digest('base64')}`).join(' ')
}
