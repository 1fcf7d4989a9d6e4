/** Faults of the server as a whole: it ends, comes back, stands still, or another one takes its place. */
import { setTimeout as sleep } from 'node:timers/promises'
import { query } from '../../servers/postgres.ts'
import type { PostgresServers, Replication } from '../engines/postgres-servers.ts'
import type { Nemesis, Scene } from '../scene.ts'
import { between } from './random.ts'

/** With a lease of one to two seconds, some of these outlive it. */
const FREEZE_MS = [200, 3_000] as const
const DOWN_MS = [0, 1_500] as const
/** How long an asynchronous standby has been cut off before the primary is lost: this much is undone. */
const BEHIND_MS = [20, 400] as const

export function serverNemeses(servers: PostgresServers): readonly Nemesis[] {
  const simple = (name: string, does: string, act: (random: () => number) => Promise<void>): Nemesis => ({
    name,
    does,
    strike: (scene, random) => scene.during({ nemesis: name, target: null }, () => act(random)),
  })
  return [
    simple('server-restart', 'restarts the server in an orderly way', async () => {
      await servers.primary.restart?.('restart')
    }),
    simple('server-crash', 'kills all processes of the server, and starts it again a moment later', async (random) => {
      await servers.primary.kill()
      await sleep(between(random, ...DOWN_MS))
      await servers.primary.start()
    }),
    simple('server-freeze', 'stops all processes of the server for a moment', async (random) => {
      await servers.primary.freeze()
      await sleep(between(random, ...FREEZE_MS))
      await servers.primary.thaw()
    }),
    {
      name: 'server-failover',
      does: 'loses the server for good; its synchronous standby takes over',
      strike: (scene) => failOver(servers, 'synchronous', scene),
    },
    {
      name: 'server-failover-behind',
      does: 'loses the server for good; an asynchronous standby takes over that was cut off a moment before',
      strike: (scene, random) => failOver(servers, 'asynchronous', scene, between(random, ...BEHIND_MS)),
    },
  ]
}

/** The standby is made before, and is no fault. */
async function failOver(
  servers: PostgresServers,
  replication: Replication,
  { during }: Scene,
  behindMs = 0,
): Promise<void> {
  const standby = await servers.addStandby(replication)
  if (replication === 'synchronous') {
    await during({ nemesis: 'server-failover', target: null }, () => servers.promote(standby))
    return
  }
  const sinceMs = performance.now()
  await query(standby.url, `alter system set primary_conninfo = ''`)
  await query(standby.url, 'select pg_reload_conf()')
  await sleep(behindMs)
  const recentMs = Math.ceil(performance.now() - sinceMs)
  const detail = `the standby was cut off ${recentMs} ms before`
  await during({ nemesis: 'server-failover-behind', target: null, detail, allows: ['lose-recent'], recentMs }, () =>
    servers.promote(standby),
  )
}
