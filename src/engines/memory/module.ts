import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { EngineError } from '../../errors.ts'
import { MemoryEngine } from './engine.ts'

/** Every `memory:` is a memory of its own; to share one, pass engines over the same MemoryStore. */
export function fromUrl(url: string, settings: EngineSettings): Engine {
  if (url === 'memory:') return new MemoryEngine({ clock: settings.clock })
  throw new EngineError('ERR_ENGINE_URL', `'${url}' names no memory engine; the URL is 'memory:' and nothing more`)
}

export function fromHandle(_handle: object, _settings: EngineSettings): Engine | null {
  return null
}
