/** The keys of heartbeats in Redis, which other programs of the escrow workers read and write too. */
import { decodeBeat } from '../../engine/beats.ts'
import type { Beat } from '../../engine/presence.ts'

/** `worker:{type}:{instance_id}`. A colon in a type is written %3A, so that a key can be read back. */
export function heartbeatKey(type: string, instance: string): string {
  return `worker:${type.replaceAll(':', '%3A')}:${instance}`
}

/** Whose key it is; null for what is no such key. */
export function ownerOf(key: string): { readonly type: string; readonly instance: string } | null {
  const [, type = '', instance = ''] = /^worker:([^:]+):(.+)$/s.exec(key) ?? []
  return type === '' ? null : { type: type.replaceAll('%3A', ':'), instance }
}

/** Null for what is no heartbeat. */
export function readHeartbeat(key: string, value: string): Beat | null {
  const owner = ownerOf(key)
  return owner === null ? null : decodeBeat(owner, value)
}
