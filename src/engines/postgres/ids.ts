import { UnsupportedError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'

/**
 * Jobs under ids that the table can hold. A ULID and a UUID are 128 bits both, so in a table with ids of type uuid a
 * job is known by the UUID of the same bits, and repeating an enqueue is still harmless.
 */
export function withIds(jobs: readonly NewJob[], idType: string): readonly NewJob[] {
  if (idType === 'text' || idType === 'character varying') return jobs
  if (idType !== 'uuid') {
    const limit = `cannot give ids of type ${idType}; insert rows into the table yourself, workers run them`
    const [job] = jobs
    throw new UnsupportedError({ ...(job !== undefined && { job: job.type }), engine: 'postgres', limit })
  }
  return jobs.map((job) => ({
    ...job,
    id: toUuid(job.id),
    after: job.after === null ? null : { ...job.after, ids: job.after.ids.map(toUuid) },
  }))
}

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** What is no ULID stays as it is, and is refused by the server unless it is a UUID. */
function toUuid(id: string): string {
  if (!isUlid(id)) return id
  let bits = 0n
  for (const digit of id) bits = bits * 32n + BigInt(DIGITS.indexOf(digit))
  const hex = bits.toString(16).padStart(32, '0')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

function isUlid(id: string): boolean {
  return /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id)
}
