import { EngineError } from '../../errors.ts'

/** What `INFO` says, by name. */
export type Info = ReadonlyMap<string, string>

export function parseInfo(text: string): Info {
  const lines = text.split('\r\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** BullMQ 6 starts from 5.0 and recommends this; from here on the commands are there that Millrace uses. */
export const VERSION_MIN = '6.2.0'

export function isOlder(version: string, than: string): boolean {
  const [left, right] = [version, than].map((text) => text.split('.').map(Number))
  for (const [at, wanted] of (right ?? []).entries()) {
    const found = left?.[at] ?? 0
    if (found !== wanted) return found < wanted
  }
  return false
}

export const SET_POLICY = 'CONFIG SET maxmemory-policy noeviction'

/** Whether jobs are safe on this server and BullMQ's scripts run there; throws with what to do. */
export function assertUsable(info: Info): void {
  const version = info.get('redis_version') ?? ''
  if (version !== '' && isOlder(version, VERSION_MIN)) {
    throw new EngineError(
      'ERR_STORAGE_OPEN',
      `Redis ${version} is too old; upgrade the server to ${VERSION_MIN} or later, which BullMQ recommends too`,
    )
  }
  if (info.get('redis_mode') === 'cluster' || info.get('cluster_enabled') === '1') {
    throw new EngineError(
      'ERR_STORAGE_OPEN',
      'this Redis is part of a cluster, which is not supported: a job and its idempotency key may lie on two servers; give the address of a single primary',
    )
  }
  if (info.get('role') === 'slave') {
    throw new EngineError(
      'ERR_STORAGE_READONLY',
      `this Redis is a replica of ${info.get('master_host')}:${info.get('master_port')}; give the address of the primary`,
    )
  }
  const policy = info.get('maxmemory_policy') ?? 'noeviction'
  if (policy !== 'noeviction') {
    throw new EngineError(
      'ERR_STORAGE_OPEN',
      `this Redis may throw away jobs when its memory is full (maxmemory-policy is '${policy}'); run: redis-cli ${SET_POLICY} (and put 'maxmemory-policy noeviction' into redis.conf, or set it with your provider)`,
    )
  }
}
