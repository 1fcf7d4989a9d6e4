/**
 * `npm run start:reaper`: the reaper of job tables as a service, for pm2 or systemd, until SIGTERM or SIGINT.
 * With `--once` it runs once, for cron. The database is DATABASE_URL or `--engine`; the settings come from the environment.
 */

import { createLog } from '../src/observe/log.ts'
import { systemClock } from '../src/time/clock.ts'
import { runReaper } from '../workloads/job-tables/service.ts'

const log = createLog({ name: 'reaper' })
const stopping = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.abort())

try {
  const args = process.argv.slice(2)
  const parts = { args, environment: process.env, log, clock: systemClock, signal: stopping.signal }
  const result = await runReaper(parts)
  if (result !== null) console.log(JSON.stringify(result))
} catch (error) {
  log.error('Reaper could not run', { error: error instanceof Error ? error.message : String(error) })
  process.exitCode = 1
}
