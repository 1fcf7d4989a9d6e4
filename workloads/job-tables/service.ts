import { parseArgs } from 'node:util'
import { OptionError } from '../../src/errors.ts'
import type { Log } from '../../src/job/definition.ts'
import { redact } from '../../src/job/error-record.ts'
import type { Clock } from '../../src/time/clock.ts'
import { connectTo } from './commands.ts'
import { Reaper, type ReaperResult } from './reaper.ts'
import type { ReaperMetrics, Republish } from './reaper-report.ts'
import { type Environment, readTableSettings } from './settings.ts'
import { JOB_TABLES } from './shape.ts'

export interface ReaperProgram {
  /** `--once`, `--tables jobs,asr_jobs`, `--engine postgres://…`. */
  readonly args: readonly string[]
  readonly environment: Environment
  readonly log: Log
  readonly clock: Clock
  /** Ends the service after the current pass. */
  readonly signal: AbortSignal
  readonly metrics?: ReaperMetrics
  readonly republish?: Republish
}

export function tableList(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.includes('')) throw new OptionError(`'${text}' is not a list of tables; give names such as jobs,asr_jobs`)
  return names
}

/** The reaper as a program: a service until the signal, or one run with `--once`. Returns null for a service. */
export async function runReaper(program: ReaperProgram): Promise<ReaperResult | null> {
  const { args, environment, log, signal } = program
  const { values } = parse(args)
  const url = values.engine ?? environment.MILLRACE_ENGINE ?? environment.DATABASE_URL
  if (url === undefined || url === '') {
    throw new OptionError('no database; set DATABASE_URL or pass --engine postgres://…')
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

export interface ReaperService {
  /** Resolves after the current pass. It may be called twice. */
  stop(): Promise<void>
}

/**
 * Runs at once, then `REAPER_INTERVAL_SEC` after the end of each run, so that runs never overlap. A failed run is logged,
 * and the next one follows as usual.
 *
 * @example
 * const service = startReaper(new Reaper(pool))
 * await service.stop()
 */
export function startReaper(reaper: Reaper): ReaperService {
  const { clock, log, settings } = reaper
  const stopping = new AbortController()
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await reaper.runOnce(stopping.signal)
      } catch (error) {
        const text = redact(error instanceof Error ? error.message : String(error))
        log.error('Reaper run failed', { error: text, next_run_sec: settings.intervalSec })
      }
      await clock.sleep(settings.intervalSec * 1_000, stopping.signal)
    }
  }
  const done = loop()
  return {
    stop: async () => {
      stopping.abort()
      await done
    },
  }
}
