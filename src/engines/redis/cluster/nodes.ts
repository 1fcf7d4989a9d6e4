import { EngineError, messageOf } from '../../../errors.ts'
import { systemClock } from '../../../time/clock.ts'
import type { SlotSource } from '../database.ts'
import { clientFor, connectionOptions, type RedisClient } from '../driver.ts'
import type { HostPort } from '../hosts.ts'
import type { RedisAddress } from '../options.ts'
import { connectorTo } from './connector.ts'
import { type Member, ownerIn, parseMembers } from './members.ts'

/** How long one node may take to say who has which slot. */
const ASK_MS = 1_000
/** How much longer the others are waited for, once one has answered. */
const OTHERS_MS = 300
/** Connections that are opened at the same time share one look. */
const AGE_MS = 50

/** How to reach the nodes of a cluster, and through which of them it is found. */
export interface ClusterSource {
  readonly seeds: readonly HostPort[]
  /** Login and TLS of every node: a client that never connects itself. */
  readonly template: RedisClient
  readonly isTls: boolean
  /** From the address that a node announces to the one under which it is reached from here. */
  readonly reachedAt: (announced: HostPort) => HostPort
}

export async function clusterSource(address: RedisAddress, seeds: readonly HostPort[]): Promise<ClusterSource> {
  // The first server's name is not the name of the others.
  const template = await clientFor({ ...address, host: '127.0.0.1' })
  return { seeds, template, isTls: address.tls !== null, reachedAt: (announced) => announced }
}

/** Which node has which slot. Nodes are asked for every new connection, and the newest claim of any of them counts. */
export class ClusterNodes {
  readonly #source: ClusterSource
  readonly #Connector: Parameters<typeof connectorTo>[0]
  #known: readonly HostPort[]
  #looking: Promise<readonly (readonly Member[])[]> | null = null

  static async open(source: ClusterSource): Promise<ClusterNodes> {
    const { AbstractConnector } = await import('ioredis')
    const nodes = new ClusterNodes(source, AbstractConnector)
    await nodes.views()
    return nodes
  }

  private constructor(source: ClusterSource, Connector: Parameters<typeof connectorTo>[0]) {
    this.#source = source
    this.#Connector = Connector
    this.#known = source.seeds
  }

  /** Connections that lead to the node that has the slot when they are opened. */
  ofSlot(slot: number): SlotSource {
    return this.#through(() => this.#ownerOf(slot))
  }

  /** Connections to one node. */
  ofNode(node: HostPort): SlotSource {
    return this.#through(async () => node)
  }

  #through(resolve: () => Promise<HostPort>): SlotSource {
    const Connector = connectorTo(this.#Connector, resolve)
    return {
      connectionTo: (options) => {
        const through = { ...options, Connector }
        return this.#source.template.duplicate(through)
      },
    }
  }

  async #ownerOf(slot: number): Promise<HostPort> {
    const owner = ownerIn(await this.views(), slot)
    if (owner !== null) return this.#source.reachedAt(owner)
    throw new EngineError(
      'ERR_STORAGE_BUSY',
      `no node of this Redis Cluster has slot ${slot}; look at redis-cli CLUSTER NODES, and assign it`,
    )
  }

  /** The nodes as each that answers sees them. */
  views(): Promise<readonly (readonly Member[])[]> {
    if (this.#looking !== null) return this.#looking
    const looking = this.#look()
    this.#looking = looking
    const forget = (): void => {
      systemClock.after(AGE_MS, () => {
        if (this.#looking === looking) this.#looking = null
      })
    }
    looking.then(forget, forget)
    return looking
  }

  async #look(): Promise<readonly (readonly Member[])[]> {
    const views: (readonly Member[])[] = []
    const failures: unknown[] = []
    const enough = new AbortController()
    const asked = this.#known.map(async (node) => {
      try {
        views.push(await this.#ask(node))
        void systemClock.sleep(OTHERS_MS, enough.signal).then(() => enough.abort())
      } catch (error) {
        failures.push(error)
      }
    })
    const cut = new Promise((resolve) => enough.signal.addEventListener('abort', resolve, { once: true }))
    await Promise.race([Promise.all(asked), cut])
    enough.abort()
    if (views.length === 0) throw noNode(failures)
    const found = views.flat().map((member) => this.#source.reachedAt(member))
    const byName = [...found, ...this.#source.seeds].map((node) => [`${node.host}:${node.port}`, node] as const)
    this.#known = [...new Map(byName).values()]
    return views
  }

  async #ask(node: HostPort): Promise<readonly Member[]> {
    const options = connectionOptions({ name: 'millrace:nodes', connectMs: ASK_MS, answerMs: ASK_MS })
    const client = this.ofNode(node).connectionTo(options)
    let last: Error | null = null
    client.on('error', (error) => {
      last = error
    })
    try {
      await client.connect()
      return parseMembers(String(await client.call('cluster', ['nodes'])), node, this.#source.isTls)
    } catch (error) {
      throw last ?? error
    } finally {
      client.disconnect()
    }
  }

  close(): void {
    this.#source.template.disconnect()
  }
}

function noNode(failures: readonly unknown[]): unknown {
  const [first] = failures
  if (!/cluster support disabled/.test(messageOf(first))) return first
  return new EngineError('ERR_STORAGE_OPEN', 'this Redis is no node of a cluster; write redis: or rediss:')
}
