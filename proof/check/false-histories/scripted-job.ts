import type { JobView } from '../../../src/job/job.ts'
import type { AskedJob, GivenLease } from '../../history/entry.ts'
import { digestOf } from '../../history/recorder.ts'

export function askedJob(id: string, fields: Partial<AskedJob>): AskedJob {
  return { id, type: 'plain', priority: 5, attempts: 3, digest: digestOf(`"${id}"`), payloadVersion: 1, ...fields }
}

export function viewOf(job: AskedJob, nowMs: number): JobView {
  const { id, type, payloadVersion, priority, attempts, key = null, latest, after = null, delayMs = 0 } = job
  const blank = { tenant: null, options: null, progress: null, result: null, error: null, leaseOwner: null }
  const times = { createdAtMs: nowMs, updatedAtMs: nowMs, runAtMs: job.runAtMs ?? nowMs + delayMs }
  const none = {
    leaseUntilMs: null,
    startedAtMs: null,
    completedAtMs: null,
    durationMs: null,
    replays: 0,
    attempt: 0,
    tags: [],
  }
  const about = { id, type, payload: `"${id}"`, payloadVersion, priority, attempts, key, after }
  return { ...about, ...blank, ...times, ...none, latestKey: latest?.key ?? null, state: 'queued' }
}

export function leaseOf(
  { id, type, digest, priority, key, latest, tenant }: AskedJob,
  given: Pick<GivenLease, 'attempt' | 'token' | 'runAtMs'> & Partial<GivenLease>,
): GivenLease {
  const kept = {
    ...(key !== undefined && { key }),
    ...(latest !== undefined && { latestKey: latest.key }),
    ...(tenant !== undefined && { tenant }),
  }
  return { id, type, digest, priority, ...kept, ...given }
}
