import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { isClient } from './driver.ts'
import { RedisEngine } from './engine.ts'
import { parseUrl, threadUrlOf } from './options.ts'

/** `redis://user:password@host:6379/0?prefix=bull`, or `rediss:` for TLS. */
export function fromUrl(url: string, settings: EngineSettings): Engine {
  const { address, options } = parseUrl(url)
  return new RedisEngine({ address }, settings, { ...options, threadUrl: threadUrlOf(url, options.answerMs) })
}

/** A client of ioredis: it tells the way, and stays the user's to use and to end. */
export function fromHandle(handle: object, settings: EngineSettings): Engine | null {
  return isClient(handle) ? new RedisEngine({ client: handle }, settings) : null
}
