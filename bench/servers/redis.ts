/** Prefixes on the Redis of a run: each measurement has its own, with nothing under it. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { dropPrefix, withRedis } from '../../test/servers/redis.ts'

/** A URL with a prefix that nobody uses; it begins with `prefix`. */
export async function createPrefix(url: string, prefix: string): Promise<string> {
  // What the one before left to be written is not for this one to wait for.
  await withRedis(url, rewritten)
  const created = new URL(url)
  created.searchParams.set('prefix', `${prefix}:${randomBytes(4).toString('hex')}`)
  return created.href
}

/** Deletes all keys of the URL's prefix, and of those within it. */
export function removePrefix(url: string): Promise<void> {
  return dropPrefix(url, prefixOf(url))
}

export function prefixOf(url: string): string {
  return new URL(url).searchParams.get('prefix') ?? 'bull'
}

/** What `ioredis` connects to. */
export function addressOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

/** An append-only file of what there is now: Redis would begin to write it anew in the middle of a measurement. */
async function rewritten(redis: Redis): Promise<void> {
  const running = async (): Promise<boolean> =>
    /aof_rewrite_(in_progress|scheduled):1/.test(await redis.info('persistence'))
  // Another measurement may have asked for it in this very moment, which will do.
  if (!(await running())) await redis.bgrewriteaof().catch(() => {})
  while (await running()) await sleep(10)
}
