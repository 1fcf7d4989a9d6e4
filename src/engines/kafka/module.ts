import type { Capabilities } from '../../engine/capabilities.ts'
import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { BrokerTopics, type OpenTopicsOptions } from './broker-topics.ts'
import { capabilitiesOf as capabilitiesWith, KafkaEngine } from './engine.ts'
import { parseUrl } from './options.ts'

/** `kafka://host:9092,host:9092?group=name`. */
export async function connect(url: string, settings: EngineSettings): Promise<Engine> {
  return KafkaEngine.connect(parseUrl(url), settings)
}

export function capabilitiesOf(url: string): Capabilities {
  return capabilitiesWith(parseUrl(url))
}

export function openTopics(url: string, options?: OpenTopicsOptions): Promise<BrokerTopics> {
  return BrokerTopics.open(url, options)
}
