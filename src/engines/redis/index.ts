export { RedisClusterEngine } from './cluster/engine.ts'
export type { RedisClient } from './driver.ts'
export { RedisEngine } from './engine.ts'
export type { RedisOptions } from './options.ts'
