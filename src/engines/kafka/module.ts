import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { KafkaEngine } from './engine.ts'
import { parseUrl } from './options.ts'

/** `kafka://host:9092,host:9092?group=name`. */
export function fromUrl(url: string, settings: EngineSettings): Engine {
  return new KafkaEngine(parseUrl(url), settings)
}

/** A client of the user's own has its own retries and its own streams, on which nothing here could be built. */
export function fromHandle(_handle: object, _settings: EngineSettings): Engine | null {
  return null
}

export { openTopicDesk as openTopics } from './dead-letters/open.ts'
