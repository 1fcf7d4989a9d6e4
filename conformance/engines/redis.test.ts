import { exercise } from '../exercise.ts'
import golden from '../matrix.json' with { type: 'json' }
import { REDIS_LEASE_MS, redisHarness } from './redis.ts'

exercise('redis', () => redisHarness(), { leaseMs: REDIS_LEASE_MS, golden: golden.redis })
