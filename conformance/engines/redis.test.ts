import { exercise } from '../exercise.ts'
import { REDIS_LEASE_MS, redisHarness } from './redis.ts'

exercise('redis', () => redisHarness(), { leaseMs: REDIS_LEASE_MS })
