/** The whole suite takes about a minute: `CLUSTER_LEVELS=port,client,process node --test conformance/engines/redis-cluster.test.ts`. */
import { LEVELS } from '../case.ts'
import { exercise } from '../exercise.ts'
import { REDIS_LEASE_MS } from './redis.ts'
import { redisClusterHarness } from './redis-cluster.ts'

const chosen = (process.env.CLUSTER_LEVELS ?? 'port').split(',')
const levels = LEVELS.filter((level) => chosen.includes(level))

exercise('redis-cluster', () => redisClusterHarness(), { leaseMs: REDIS_LEASE_MS, levels })
