import type { Lease } from '../../engine/outcome.ts'
import type { StoreClock, StoreTime } from '../../engine/store-steps.ts'
import { LEASE_DEFAULT_MS } from '../../job/options.ts'
import type { RedisDatabase } from './database.ts'
import { bullId, queueOf } from './keys.ts'
import { followClockScript, readClockScript, retakeScript } from './lua/clock.ts'

/** The server's clock, by which locks end, limits are counted and delays pass. */
export function serverClock(database: RedisDatabase): Omit<StoreClock, 'onStep'> {
  return {
    async read(): Promise<StoreTime> {
      const answer = await database.run(readClockScript(), [])
      const [nowMs, followedMs] = Array.isArray(answer) ? answer : []
      return { nowMs: Number(nowMs), followedMs: Number(followedMs) }
    },
    shift: async (stepMs, followedMs) =>
      (await database.run(followClockScript(), [stepMs, followedMs, LEASE_DEFAULT_MS])) === 1,
  }
}

/** Takes back the locks of leases that ended only because the server's clock was set. Whether there were any. */
export async function retakeLocks(
  database: RedisDatabase,
  worker: string,
  leases: readonly Lease[],
  leaseMs: number = LEASE_DEFAULT_MS,
): Promise<boolean> {
  const args = leases.flatMap(({ job, token }) => [queueOf(job.type), bullId(job.type, job.id), token])
  return Number(await database.run(retakeScript(), [worker, leaseMs, leases.length, ...args])) > 0
}
