import type { EngineSettings } from '../../../engine/open.ts'
import { RemovedJobViews } from '../../../engine/wait-until-finished.ts'
import { ClosedError } from '../../../errors.ts'
import { RedisEngine } from '../engine.ts'
import { prefixOfType, queueOf, sharedPrefix, typeOf } from '../keys.ts'
import type { RedisOptions } from '../options.ts'
import { listOf } from '../rows.ts'
import type { ClusterNodes } from './nodes.ts'
import { slotOf } from './slots.ts'

/** A failover may undo the entry of a type, so it is made again. */
const ENLIST_MS = 60_000

/** In a cluster each type is a store of its own, on one slot; a further one holds what belongs to no type. */
export class TypeStores {
  readonly nodes: ClusterNodes
  readonly removedViews = new RemovedJobViews()
  readonly #settings: EngineSettings
  readonly #options: Required<RedisOptions>
  readonly #opened = new Map<string, Promise<RedisEngine>>()
  /** When each type was last entered into the set of types. */
  readonly #enlisted = new Map<string, number>()
  #shared: RedisEngine | null = null
  #closing: Promise<void> | null = null

  static async open(
    nodes: ClusterNodes,
    settings: EngineSettings,
    options: Required<RedisOptions>,
  ): Promise<TypeStores> {
    const stores = new TypeStores(nodes, settings, options)
    stores.#shared = await stores.#connect(sharedPrefix(options.prefix))
    return stores
  }

  private constructor(nodes: ClusterNodes, settings: EngineSettings, options: Required<RedisOptions>) {
    this.nodes = nodes
    this.#settings = settings
    this.#options = options
  }

  #connect(prefix: string): Promise<RedisEngine> {
    const source = this.nodes.ofSlot(slotOf(prefix))
    return RedisEngine.connect(source, this.#settings, { ...this.#options, prefix, removedViews: this.removedViews })
  }

  get shared(): RedisEngine {
    if (this.#shared === null || this.#closing !== null) throw new ClosedError('this Redis engine')
    return this.#shared
  }

  of(type: string): Promise<RedisEngine> {
    const known = this.shared && this.#opened.get(type)
    if (known !== undefined) return known
    const opening = this.#connect(prefixOfType(this.#options.prefix, type))
    this.#opened.set(type, opening)
    // The next call tries again.
    opening.catch(() => this.#opened.delete(type))
    return opening
  }

  /**
   * The store of a type that jobs are put into or taken from. The type is in the set of types before: otherwise nobody
   * would find its jobs again.
   */
  async enlisted(type: string): Promise<RedisEngine> {
    const nowMs = this.#settings.clock.monotonicMs()
    const lastMs = this.#enlisted.get(type)
    if (lastMs === undefined || nowMs - lastMs > ENLIST_MS) {
      const { database } = this.shared
      const entering = database.call('sadd', database.keys.types, queueOf(type))
      // A type that was there before need not wait for a node that does not answer.
      if (lastMs === undefined) await entering
      else entering.catch(() => this.#enlisted.set(type, lastMs))
      this.#enlisted.set(type, nowMs)
    }
    return this.of(type)
  }

  /** Every type that jobs were ever put into, by name. */
  async types(): Promise<readonly string[]> {
    const { database } = this.shared
    return listOf(await database.call('smembers', database.keys.types))
      .map((queue) => typeOf(String(queue)))
      .sort()
  }

  /** The stores of every type. */
  async every(): Promise<readonly RedisEngine[]> {
    return Promise.all((await this.types()).map((type) => this.of(type)))
  }

  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  async #end(): Promise<void> {
    const engines = await Promise.allSettled([...this.#opened.values()])
    for (const opened of engines) if (opened.status === 'fulfilled') await opened.value.close()
    await this.#shared?.close()
    this.nodes.close()
  }
}
