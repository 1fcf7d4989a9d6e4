/** The Redis of a round as its nemeses see it, and what they have in common. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Allowance } from '../../../proof/history/entry.ts'
import { type OwnRedis, withRedis } from '../../servers/redis.ts'
import type { Nemesis } from '../scene.ts'

/** The user of the processes of a round. Everything else is the default user, which no fault touches. */
export const LOGIN = Object.freeze({ user: 'proof', password: 's3cret' })

export class RedisTarget {
  readonly prefix: string
  /** Where the wires lead: to the server, and to the one that takes its place. */
  readonly address: { readonly host: string; port: number }
  /** Starts another one with the same settings. */
  readonly startOther: () => Promise<OwnRedis>
  #server: OwnRedis

  constructor(server: OwnRedis, prefix: string, startOther: () => Promise<OwnRedis>) {
    this.#server = server
    this.prefix = prefix
    this.startOther = startOther
    this.address = { host: '127.0.0.1', port: server.port }
  }

  get server(): OwnRedis {
    return this.#server
  }

  /** From now on this one is the server of the round. */
  replaceServer(server: OwnRedis): void {
    this.#server = server
    this.address.port = server.port
  }

  /** On a connection of its own, beside the wire. */
  ask<Result>(use: (redis: Redis) => Promise<Result>): Promise<Result> {
    return withRedis(this.server.url, use)
  }

  /** A field of `INFO`. */
  info(name: string): Promise<string> {
    return infoOf(this.server, name)
  }

  /** The connections of the round's processes. */
  connections(redis: Redis): Promise<readonly string[]> {
    return redis
      .client('LIST')
      .then((list) =>
        [...String(list).matchAll(/^id=(\d+) .*\buser=(\S+)/gm)].flatMap(([, id = '', user]) =>
          user === LOGIN.user ? [id] : [],
        ),
      )
  }
}

async function infoOf({ url }: OwnRedis, name: string): Promise<string> {
  const text = await withRedis(url, (redis) => redis.info())
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1] ?? ''
}

/** Until all these fields of `INFO` have these values, one after the other. */
export async function untilInfo(server: OwnRedis, wanted: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(wanted)) while ((await infoOf(server, name)) !== value) await sleep(50)
}

export interface RedisFault {
  readonly name: string
  readonly does: string
  readonly allows?: readonly Allowance[]
  /** With `lose-recent`. */
  readonly recentMs?: number
  /** What it needs, before it strikes. */
  prepare?(target: RedisTarget): Promise<void>
  /** Strikes and heals. */
  strike(target: RedisTarget, random: () => number): Promise<void>
}

export function redisNemesis(target: RedisTarget, fault: RedisFault): Nemesis {
  const { name, does, allows, recentMs } = fault
  const noted = { nemesis: name, target: null, ...(allows && { allows }), ...(recentMs && { recentMs }) }
  return {
    name,
    does,
    async strike(scene, random) {
      await fault.prepare?.(target)
      await scene.during(noted, () => fault.strike(target, random))
    },
  }
}

/** Between a fifth of a lease and more than a whole one. */
export function forAWhile(random: () => number, mostMs = 2_500): Promise<void> {
  return sleep(200 + random() * (mostMs - 200))
}

/** Sets it, and sets it back however the strike ends: on one connection, because the server may take no others meanwhile. */
export function withSetting(
  target: RedisTarget,
  { name, to, back }: { readonly name: string; readonly to: string | number; readonly back: string | number },
  strike: (redis: Redis) => Promise<void>,
): Promise<void> {
  return target.ask(async (redis) => {
    await redis.config('SET', name, to)
    try {
      await strike(redis)
    } finally {
      await redis.config('SET', name, back)
    }
  })
}
