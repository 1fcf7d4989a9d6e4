import { Redis } from 'ioredis'
import type { Engine } from '../../src/engine/engine.ts'
import { connect } from '../../src/engines/redis/module.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { type LossyWire, lossyWire } from '../../test/servers/lossy-wire.ts'
import { dropPrefix, prefixUrl, redisServer } from '../../test/servers/redis.ts'
import type { Harness } from '../harness.ts'

/** Locks end by Redis's own time, so a lease must outlast what a case may really take. */
export const REDIS_LEASE_MS = 10_000

/** Every view has connections of its own to one prefix of its own. Time is virtual, and Redis's TTLs are made to follow it. */
export async function redisHarness(clock: TestClock = new TestClock()): Promise<Harness> {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  const outside = new Redis(server.url)
  const views: Engine[] = []
  const wires: LossyWire[] = []
  const view = async (): Promise<Engine> => {
    const engine = await connect(url, { clock, migrate: true })
    views.push(engine)
    return engine
  }
  const engine = await view()
  return {
    engine,
    clock,
    url,
    other: view,
    async lossyView() {
      const wire = await lossyWire(url, server)
      wires.push(wire)
      const lossy = await connect(wire.url, { clock, migrate: true })
      views.push(lossy)
      return { engine: lossy, loseNextAnswer: wire.loseNextAnswer }
    },
    advance: (ms) => advance(clock, ms, (passedMs) => age(outside, prefix, passedMs)),
    // Redis ends keys by its own clock, which the test's stands for.
    step: async (ms) => {
      await age(outside, prefix, ms)
      clock.step(ms)
    },
    destroy: async () => {
      for (const opened of views) await opened.close()
      for (const wire of wires) wire.close()
      outside.disconnect()
      await dropPrefix(server.url, prefix)
    },
  }
}

const AGE = `
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. ':*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then redis.call('PEXPIRE', key, math.max(0, left - ARGV[2])) end
end`

export async function age(redis: Redis, prefix: string, ms: number): Promise<void> {
  await redis.eval(AGE, 0, prefix, Math.ceil(ms))
}

/** What the server is asked when a timer fires takes real time, so virtual time must not run ahead of it. */
export async function advance(clock: TestClock, ms: number, aged: (ms: number) => Promise<void>): Promise<void> {
  const step = Math.max(10, ms / 10)
  for (let left = ms; left > 0; left -= step) {
    const passedMs = Math.min(step, left)
    await aged(passedMs)
    await clock.advance(passedMs)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
