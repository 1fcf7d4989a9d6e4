import { parseArgs } from 'node:util'
import { OptionError } from '../../../errors.ts'
import type { Log } from '../../../job/definition.ts'
import type { Clock } from '../../../time/clock.ts'
import { connectTo } from './connect.ts'
import { type Environment, readTableSettings } from './environment.ts'
import { JOB_TABLES } from './job-table.ts'
import type { ReaperMetrics } from './metrics.ts'
import { Reaper, type ReaperResult } from './reaper.ts'
import { startReaper } from './reaper-service.ts'
import type { Republish } from './report.ts'

export interface ReaperProgram {
  /** `--once`, `--tables jobs,asr_jobs`, `--engine postgres://…`. */
  readonly args: readonly string[]
  readonly environment: Environment
  readonly log: Log
  readonly clock: Clock
  /** Ends the service; a run under way comes to the end of its pass. */
  readonly signal: AbortSignal
  readonly metrics?: ReaperMetrics
  readonly republish?: Republish
}

/** `jobs,asr_jobs` as names. */
export function tableList(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.includes('')) throw new OptionError(`'${text}' is no list of tables; give names such as jobs,asr_jobs`)
  return names
}

/**
 * The reaper as a program: a service until the signal, or one run with `--once` (E05). Answers what the one run did, and
 * null for a service.
 */
export async function runReaper(program: ReaperProgram): Promise<ReaperResult | null> {
  const { args, environment, log, signal } = program
  const { values } = parse(args)
  const url = values.engine ?? environment.MILLRACE_ENGINE ?? environment.DATABASE_URL
  if (url === undefined || url === '') {
    throw new OptionError('no database is given; set DATABASE_URL or pass --engine postgres://…')
  }
  const tables = values.tables === undefined ? JOB_TABLES : tableList(values.tables)
  const settings = readTableSettings(environment)
  const { database, schema, close } = await connectTo(url)
  try {
    const reaper = new Reaper(database, { ...program, tables, schema, settings })
    if (values.once) return await reaper.runOnce(signal)
    log.info('Reaper started', { tables, schema, interval_sec: settings.intervalSec })
    const service = startReaper(reaper)
    await aborted(signal)
    await service.stop()
    log.info('Reaper stopped')
    return null
  } finally {
    await close()
  }
}

function parse(args: readonly string[]) {
  const options = { once: { type: 'boolean' }, tables: { type: 'string' }, engine: { type: 'string' } } as const
  try {
    return parseArgs({ args: [...args], options, strict: true })
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    throw new OptionError(`${text} (known: --once, --tables, --engine)`, { cause: error })
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
