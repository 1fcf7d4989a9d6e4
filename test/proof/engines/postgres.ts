/** A schema of its own for each round, on one server for all of them. */
import { capabilitiesOf, migrate } from '../../../src/engines/postgres/module.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { postgresNemeses } from '../nemeses/postgres.ts'
import { producersFor } from '../producers/index.ts'
import type { OpenStore } from '../scene.ts'
import { TcpWire } from '../wire.ts'
import { PostgresServers, PROOF_ROLE } from './postgres-servers.ts'

let shared: Promise<PostgresServers> | null = null
let rounds = 0

/** Started with the first round; it ends with this process. */
function postgresServers(): Promise<PostgresServers> {
  shared ??= PostgresServers.start()
  return shared
}

/** Before the process ends by itself: for tests. */
export async function stopPostgresServers(): Promise<void> {
  const servers = shared
  shared = null
  await (await servers)?.stop()
}

export const openPostgresStore: OpenStore = async () => {
  const servers = await postgresServers()
  rounds += 1
  const schema = `proof_${process.pid}_${rounds}`
  const wire = new TcpWire()
  const through = await Promise.all(servers.ports.map((port) => wire.front({ host: '127.0.0.1', port })))
  const urlOf = (role: string, hosts: readonly { readonly host: string; readonly port: number }[]): string =>
    `postgres://${role}@${hosts.map(({ host, port }) => `${host}:${port}`).join(',')}/postgres?schema=${schema}&pool=6`
  const directUrl = urlOf(
    'postgres',
    servers.ports.map((port) => ({ host: '127.0.0.1', port })),
  )
  await migrate(`${directUrl}&grant=${PROOF_ROLE}`, { clock: systemClock, migrate: true })
  return {
    engine: 'postgres',
    capabilities: capabilitiesOf(),
    url: urlOf(PROOF_ROLE, through),
    directUrl,
    wire,
    nemeses: postgresNemeses({ servers, schema }),
    producers: producersFor(urlOf(PROOF_ROLE, through)),
    async destroy() {
      wire.close()
      await servers.administer(`DROP SCHEMA ${schema} CASCADE`)
    },
  }
}
