/** How a heartbeat is stored: the fields that other programs of the escrow workers read and write, and our own. */
import { fromIso, toIso } from '../time/iso.ts'
import type { AtWork, Beat, EndedAttempts, JobAtWork } from './presence.ts'
import { bodyFields } from './records.ts'

/** One that stops says since when. */
export function encodeBeat({ type, name, atMs, status, lastJobAtMs, lag, stoppingSinceMs, work }: Beat): string {
  return JSON.stringify({
    timestamp: toIso(atMs),
    status,
    last_message_at: lastJobAtMs === null ? null : toIso(lastJobAtMs),
    consumer_lag: lag,
    ...(stoppingSinceMs !== null && { shutting_down_since: toIso(stoppingSinceMs) }),
    // The key has the name.
    ...(name !== undefined && { type }),
    ...(work !== undefined && { work }),
  })
}

/** Null for text that is no beat. `owner`: of its key, which has the worker's name where it has one. */
export function decodeBeat(owner: { readonly type: string; readonly instance: string }, text: string): Beat | null {
  const fields = bodyFields(text)
  const { status } = fields
  const atMs = timeOf(fields.timestamp)
  if (atMs === null || (status !== 'RUNNING' && status !== 'SHUTTING_DOWN')) return null
  const work = workOf(fields.work)
  return {
    ...(typeof fields.type === 'string' ? { type: fields.type, name: owner.type } : { type: owner.type }),
    instance: owner.instance,
    status,
    atMs,
    lastJobAtMs: timeOf(fields.last_message_at),
    lag: typeof fields.consumer_lag === 'number' ? fields.consumer_lag : null,
    stoppingSinceMs: timeOf(fields.shutting_down_since),
    ...(work !== null && { work }),
  }
}

function workOf(value: unknown): AtWork | null {
  const fields = fieldsOf(value)
  const { host, pid, process, startedAtMs, concurrency, slots, ageingMs, running, pausedUntilMs, ended, jobs } = fields
  const numbers = [pid, startedAtMs, concurrency, running]
  if (typeof host !== 'string' || numbers.some((value) => typeof value !== 'number')) return null
  return {
    host,
    pid: Number(pid),
    ...(typeof process === 'string' && { process }),
    startedAtMs: Number(startedAtMs),
    concurrency: Number(concurrency),
    ...slotsOf(slots),
    ...(typeof ageingMs === 'number' && { ageingMs }),
    running: Number(running),
    ...(typeof pausedUntilMs === 'number' && { pausedUntilMs }),
    ...endedOf(ended),
    ...vitalsOf(fields),
    jobs: Array.isArray(jobs) ? jobs.flatMap(jobOf) : [],
  }
}

/** What earlier versions do not say. */
function vitalsOf({ perSecond, version, memoryBytes, loopDelayMs, drains }: Fields) {
  return {
    ...(typeof perSecond === 'number' && { perSecond }),
    ...(typeof version === 'string' && { version }),
    ...(typeof memoryBytes === 'number' && { memoryBytes }),
    ...(typeof loopDelayMs === 'number' && { loopDelayMs }),
    ...(typeof drains === 'boolean' && { drains }),
  }
}

function slotsOf(value: unknown): Pick<AtWork, 'slots'> {
  const { max, by } = fieldsOf(value)
  return typeof max === 'number' ? { slots: { max, by: by === 'tenant' ? by : null } } : {}
}

function endedOf(value: unknown): { readonly ended?: EndedAttempts } {
  const { completed, failed } = fieldsOf(value)
  return typeof completed === 'number' && typeof failed === 'number' ? { ended: { completed, failed } } : {}
}

function jobOf(value: unknown): JobAtWork[] {
  const { id, attempt, startedAtMs } = fieldsOf(value)
  if (typeof id !== 'string' || typeof attempt !== 'number' || typeof startedAtMs !== 'number') return []
  return [{ id, attempt, startedAtMs }]
}

type Fields = Partial<Readonly<Record<string, unknown>>>

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function timeOf(value: unknown): number | null {
  const ms = typeof value === 'string' ? fromIso(value) : Number.NaN
  return Number.isNaN(ms) ? null : ms
}
