/** How a beat stands in Redis: document D's keys and fields, which other programs read and write too. */
import type { Beat } from '../../engine/presence.ts'
import { fromIso, toIso } from '../../time/iso.ts'

/** `worker:{type}:{instance_id}`. A colon in a type is written %3A, so that a key can be read back. */
export function heartbeatKey(type: string, instance: string): string {
  return `worker:${type.replaceAll(':', '%3A')}:${instance}`
}

/** Whose key it is; null for what is no such key. */
export function ownerOf(key: string): { readonly type: string; readonly instance: string } | null {
  const [, type = '', instance = ''] = /^worker:([^:]+):(.+)$/s.exec(key) ?? []
  return type === '' ? null : { type: type.replaceAll('%3A', ':'), instance }
}

/** Four fields; one that stops says since when (X155). */
export function encodeBeat({ atMs, status, lastJobAtMs, lag, stoppingSinceMs }: Beat): string {
  return JSON.stringify({
    timestamp: toIso(atMs),
    status,
    last_message_at: lastJobAtMs === null ? null : toIso(lastJobAtMs),
    consumer_lag: lag,
    ...(stoppingSinceMs !== null && { shutting_down_since: toIso(stoppingSinceMs) }),
  })
}

/** Null for what is no heartbeat. */
export function decodeBeat(key: string, value: string): Beat | null {
  const owner = ownerOf(key)
  const fields = parsed(value)
  if (owner === null || fields === null) return null
  const { status } = fields
  const atMs = timeOf(fields.timestamp)
  if (atMs === null || (status !== 'RUNNING' && status !== 'SHUTTING_DOWN')) return null
  return {
    ...owner,
    status,
    atMs,
    lastJobAtMs: timeOf(fields.last_message_at),
    lag: typeof fields.consumer_lag === 'number' ? fields.consumer_lag : null,
    stoppingSinceMs: timeOf(fields.shutting_down_since),
  }
}

function parsed(value: string): Partial<Readonly<Record<string, unknown>>> | null {
  try {
    const fields: unknown = JSON.parse(value)
    return typeof fields === 'object' && fields !== null ? { ...fields } : null
  } catch {
    return null
  }
}

function timeOf(value: unknown): number | null {
  const ms = typeof value === 'string' ? fromIso(value) : Number.NaN
  return Number.isNaN(ms) ? null : ms
}
