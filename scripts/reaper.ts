/**
 * `npm run start:reaper`: the reaper of document E as a service of its own, for pm2 or systemd, until SIGTERM or SIGINT.
 * With `--once`, one run: for cron. The database is DATABASE_URL or `--engine`; the figures come from the environment.
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
