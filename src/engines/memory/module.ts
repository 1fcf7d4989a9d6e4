import type { Capabilities } from '../../engine/capabilities.ts'
import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import { CAPABILITIES, MemoryEngine } from './engine.ts'

/** Every `memory:` is a separate memory; to share one, pass engines over the same MemoryStore. */
export async function connect(url: string, settings: EngineSettings): Promise<Engine> {
  if (url === 'memory:') return new MemoryEngine({ clock: settings.clock })
  throw new EngineError('ERR_ENGINE_URL', `'${url}' names no memory engine; the URL is 'memory:' and nothing more`)
}

export function capabilitiesOf(): Capabilities {
  return CAPABILITIES
}
