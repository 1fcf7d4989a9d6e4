import { runCases } from '../fixtures/admin.ts'
import { dropPrefix, prefixUrl, redisServer } from '../servers/redis.ts'
import { CASES } from './cases/index.ts'

runCases('Redis', CASES, async () => {
  const { url, prefix } = prefixUrl(await redisServer())
  return { url, drop: () => dropPrefix(url, prefix) }
})
