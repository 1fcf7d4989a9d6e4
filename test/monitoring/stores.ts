/** A store of each engine for processes to share, and the addresses that they serve. */
import type { TestContext } from 'node:test'
import { migrate } from '../../src/engines/postgres/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import { jsonLines, type Running, temporaryFolder } from '../cli/run.ts'
import { createTopic, freshName, kafkaServer, withParameters } from '../servers/kafka.ts'
import { dropSchema, postgresServer, schemaUrl } from '../servers/postgres.ts'
import { dropPrefix, prefixUrl, redisServer } from '../servers/redis.ts'

/** An empty store with room for jobs of the types. */
export type MakeStore = (t: TestContext, types: readonly string[]) => Promise<string>

/** Those that keep heartbeats. */
export const STORES: Readonly<Record<string, MakeStore>> = {
  sqlite: async (t) => `sqlite:${await temporaryFolder(t)}/jobs.db`,
  async postgres(t) {
    const server = await postgresServer()
    const { url, schema } = schemaUrl(server)
    await migrate(url, { clock: systemClock, migrate: true })
    t.after(() => dropSchema(server.url, schema))
    return url
  },
  async redis(t) {
    const server = await redisServer()
    const { url, prefix } = prefixUrl(server)
    t.after(() => dropPrefix(server.url, prefix))
    return url
  },
}

/** A topic for each type, and a group of its own. */
export const kafkaStore: MakeStore = async (_, types) => {
  const server = await kafkaServer()
  const prefix = `${freshName('scrape')}-`
  for (const type of types) await createTopic(server, `${prefix}${type}`)
  return withParameters(server, `group=${freshName('group')}&prefix=${prefix}`)
}

/** The address that a process says it serves. */
export async function addressOf(running: Running): Promise<string> {
  await running.said(/"url":"[^"]+"/)
  const line = jsonLines(running.output).find(({ url }) => url !== undefined)
  return String(line?.url).replace('/metrics', '')
}

export async function textOf(url: string): Promise<string> {
  return (await fetch(url)).text()
}
