/** What the nemeses of Postgres share: whom and what they strike, and how they draw a number. */
import type pg from 'pg'
import type { PostgresServers } from '../engines/postgres-servers.ts'
import type { Nemesis } from '../scene.ts'

/** The server and the tables of a round. */
export interface Struck {
  readonly servers: PostgresServers
  readonly schema: string
}

export function between(random: () => number, [least, most]: readonly [least: number, most: number]): number {
  return least + random() * (most - least)
}

export function pick<Value>(random: () => number, values: readonly Value[]): Value | undefined {
  return values[Math.floor(random() * values.length)]
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

/** The server's code for it, or none. */
export function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' ? code : ''
}
