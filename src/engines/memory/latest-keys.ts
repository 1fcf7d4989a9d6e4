import type { NewJob } from '../../job/job.ts'
import type { JobRow } from './rows.ts'

export interface LatestKey {
  /** The highest version seen. */
  seqMax: number
  /** The newest version, if it is queued: due, delayed, in backoff, or waiting for the running one. */
  queued: JobRow | null
  /** The running version. */
  running: JobRow | null
  /** Jobs of the key that the store still holds. At 0 the key is idle: only its highest version is still needed. */
  held: number
}

/**
 * Latest keys by type and key. A key outlives its jobs, so that an older version is refused even after the newer one was
 * removed (I4); the last `idleMax` idle keys are remembered.
 */
export class LatestKeys {
  readonly #keys = new Map<string, LatestKey>()
  /** Names of idle keys, the longest idle first. */
  readonly #idle = new Set<string>()
  readonly #idleMax: number

  constructor(idleMax: number) {
    this.#idleMax = idleMax
  }

  get(type: string, key: string): LatestKey | null {
    return this.#keys.get(nameOf(type, key)) ?? null
  }

  /** Null for a job without a latest key. */
  of({ job }: JobRow): LatestKey | null {
    return job.latest === null ? null : this.get(job.type, job.latest.key)
  }

  /** The version of a new job; null without a latest key. */
  nextSeq(job: NewJob): number | null | 'stale' {
    if (job.latest === null) return null
    const seqMax = this.get(job.type, job.latest.key)?.seqMax ?? 0
    const seq = job.latest.seq ?? seqMax + 1
    return seq > seqMax ? seq : 'stale'
  }

  /** Makes a new job the key's newest version. The caller has checked its seq. */
  add(row: JobRow): LatestKey | null {
    const { latest, type } = row.job
    if (latest === null || row.seq === null) return null
    const name = nameOf(type, latest.key)
    const key = this.#keys.get(name) ?? { seqMax: 0, queued: null, running: null, held: 0 }
    this.#keys.set(name, key)
    this.#idle.delete(name)
    key.seqMax = row.seq
    key.held += 1
    return key
  }

  /** The store no longer holds the job. */
  remove(row: JobRow): void {
    const key = this.of(row)
    if (key === null || row.job.latest === null) return
    key.held -= 1
    if (key.held > 0) return
    this.#idle.add(nameOf(row.job.type, row.job.latest.key))
    if (this.#idle.size <= this.#idleMax) return
    for (const oldest of this.#idle) {
      this.#idle.delete(oldest)
      this.#keys.delete(oldest)
      return
    }
  }
}

/** Neither a type nor a key can contain a line feed, so two pairs never share a name. */
function nameOf(type: string, key: string): string {
  return `${type}\n${key}`
}
