/**
 * Worker processes on Redis, killed and paused at random, and the server restarted three times meanwhile.
 * `node test/chaos/redis.ts [always|everysec]` runs the full minute.
 *
 * With `appendfsync always` what Redis acknowledged is in its file, and it is killed without a goodbye too. With
 * `everysec`, what most people run, a killed Redis may have lost what it acknowledged in the last second, whatever its
 * clients are; so there it is only restarted in an orderly way, which writes everything first.
 */
import { prefixUrl, startRedis } from '../servers/redis.ts'
import { type ChaosOptions, type ChaosReport, printReport, runKillChaos } from './kill.ts'

export type Fsync = 'always' | 'everysec'

const ENDS: Readonly<Record<Fsync, readonly ('stop' | 'kill')[]>> = {
  always: ['stop', 'kill', 'kill'],
  everysec: ['stop', 'stop', 'stop'],
}

export interface RedisChaosReport extends ChaosReport {
  readonly appendfsync: Fsync
  /** How the server ended each time, and how long it was away, in milliseconds. */
  readonly restarts: readonly { readonly how: 'stop' | 'kill'; readonly awayMs: number }[]
}

export async function runRedisChaos(
  appendfsync: Fsync,
  options: Omit<ChaosOptions, 'url' | 'disasters'>,
): Promise<RedisChaosReport> {
  const server = await startRedis({ aof: appendfsync })
  try {
    const { url } = prefixUrl(server)
    const restarts: RedisChaosReport['restarts'][number][] = []
    const disasters = ENDS[appendfsync].map((how) => async () => {
      const startedAtMs = performance.now()
      await server[how]()
      await server.start()
      restarts.push({ how, awayMs: Math.round(performance.now() - startedAtMs) })
    })
    const report = await runKillChaos({ ...options, url, disasters })
    return { ...report, appendfsync, restarts }
  } finally {
    await server.end()
  }
}

if (import.meta.main) {
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  const appendfsync: Fsync = process.argv[2] === 'everysec' ? 'everysec' : 'always'
  console.log(`seed ${seed}, appendfsync ${appendfsync}, the server: ${ENDS[appendfsync].join(', ')}`)
  const report = await runRedisChaos(appendfsync, {
    jobs: 20_000,
    jobMsMax: 400,
    processes: 4,
    chaosMs: 60_000,
    finishMs: 120_000,
    seed,
  })
  printReport(report)
}
