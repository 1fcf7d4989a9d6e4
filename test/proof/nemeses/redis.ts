/** Every fault of a single Redis. */
import type { Nemesis } from '../scene.ts'
import { CONNECTION_FAULTS } from './redis-connections.ts'
import { DATA_FAULTS } from './redis-data.ts'
import { SERVER_FAULTS } from './redis-server.ts'
import { type RedisTarget, redisNemesis } from './redis-target.ts'

export function redisNemeses(target: RedisTarget): readonly Nemesis[] {
  return [...SERVER_FAULTS, ...CONNECTION_FAULTS, ...DATA_FAULTS].map((fault) => redisNemesis(target, fault))
}
