/** What the nemeses of Postgres share: what they strike, and a session of another program. */
import type pg from 'pg'
import type { PostgresServers } from '../engines/postgres-servers.ts'
import type { Nemesis } from '../scene.ts'

/** The server and the tables of a round. */
export interface Struck {
  readonly servers: PostgresServers
  readonly schema: string
}

/** A fault that lasts as long as a session of another program does something. */
export function bySession(
  { servers }: Struck,
  name: string,
  does: string,
  act: (client: pg.Client, random: () => number) => Promise<void>,
): Nemesis {
  return {
    name,
    does,
    strike: (scene, random) =>
      scene.during({ nemesis: name, target: null }, () => servers.session((client) => act(client, random))),
  }
}
