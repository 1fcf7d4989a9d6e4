import type { Capabilities } from '../../engine/capabilities.ts'
import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { isClient } from './driver.ts'
import { CAPABILITIES, RedisEngine } from './engine.ts'
import { parseUrl, threadUrlOf } from './options.ts'
import { openPresence as openRedisPresence, type RedisPresence } from './presence.ts'

/** `redis://user:password@host:6379/0?prefix=bull`, or `rediss:` for TLS. */
export async function connect(url: string, settings: EngineSettings): Promise<Engine> {
  const { address, options } = parseUrl(url)
  return RedisEngine.connect({ address }, settings, { ...options, threadUrl: threadUrlOf(url, options.answerMs) })
}

/** An ioredis client: its settings are copied; the client itself is neither used nor closed. */
export function connectHandle(handle: object, settings: EngineSettings): Promise<Engine> | null {
  return isClient(handle) ? RedisEngine.connect({ client: handle }, settings) : null
}

export function capabilitiesOf(): Capabilities {
  return CAPABILITIES
}

export function openPresence(url: string): Promise<RedisPresence> {
  return openRedisPresence(url)
}
