import { createHash } from 'node:crypto'
import { encodeTime } from 'ulid'

const TIME_LENGTH = 10
const HASH_LENGTH = 16
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/**
 * The id of a schedule's run: a ULID of the tick's time whose rest follows from the name, so that whoever fires a tick a
 * second time names the same job, and enqueues nothing (X066). `setBacks`: how often the clock was set back behind ticks
 * of a schedule that goes on all the same; those are other runs.
 */
export function runId(name: string, tickMs: number, setBacks = 0): string {
  const again = setBacks === 0 ? '' : `\n${setBacks}`
  const digest = createHash('sha256').update(`${name}\n${tickMs}${again}`).digest()
  const rest = [...digest.subarray(0, HASH_LENGTH)].map((byte) => ALPHABET.charAt(byte % ALPHABET.length))
  return encodeTime(tickMs, TIME_LENGTH) + rest.join('')
}
