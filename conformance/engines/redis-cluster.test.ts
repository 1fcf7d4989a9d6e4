import { exercise } from '../exercise.ts'
import { REDIS_LEASE_MS } from './redis.ts'
import { redisClusterHarness } from './redis-cluster.ts'

exercise('redis-cluster', () => redisClusterHarness(), { leaseMs: REDIS_LEASE_MS, levels: ['port', 'client'] })
