/** The Redis of a round as its nemeses see it, and what they have in common. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Allowance } from '../../../proof/history/entry.ts'
import { type OwnRedis, withRedis } from '../../servers/redis.ts'
import type { Nemesis } from '../scene.ts'

/** As whom the processes of the round log in. Everything else is the default user, which no fault touches. */
export const LOGIN = Object.freeze({ user: 'proof', password: 's3cret' })

export class RedisTarget {
  readonly server: OwnRedis
  readonly prefix: string

  constructor(server: OwnRedis, prefix: string) {
    this.server = server
    this.prefix = prefix
  }

  /** On a connection of its own, beside the wire. */
  ask<Result>(use: (redis: Redis) => Promise<Result>): Promise<Result> {
    return withRedis(this.server.url, use)
  }

  /** A field of `INFO`. */
  async info(name: string): Promise<string> {
    const text = await this.ask((redis) => redis.info())
    return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1] ?? ''
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

export interface RedisFault {
  readonly name: string
  readonly does: string
  readonly allows?: readonly Allowance[]
  /** Strikes and heals. */
  strike(target: RedisTarget, random: () => number): Promise<void>
}

export function redisNemesis(target: RedisTarget, { name, does, allows, strike }: RedisFault): Nemesis {
  const fault = { nemesis: name, target: null, ...(allows !== undefined && { allows }) }
  return {
    name,
    does,
    strike: (scene, random) => scene.during(fault, () => strike(target, random)),
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
