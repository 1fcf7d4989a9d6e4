import type { Command } from 'commander'
import { type Mill, open } from '../../client/mill.ts'
import { OptionError } from '../../errors.ts'
import type { AnyJob, Log } from '../../job/definition.ts'
import { toErrorRecord } from '../../job/error-record.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { WorkerOptions } from '../../worker/options.ts'
import type { Worker } from '../../worker/worker.ts'
import { duration, namesIn, wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { EXIT } from '../exit.ts'
import { loadHandledJobs } from '../modules.ts'
import type { StopRequest } from '../stop-signals.ts'
import { type LogLevel, logLevelOption, runUntilStopped, SIGHUP_HELP } from '../until-stopped.ts'
import { addMetricsOptions, type MetricsFlags, serveMetrics } from './metrics.ts'
import { addPresetOptions, type PresetFlags, presetFlags, refusePresetFlags, runPreset } from './preset.ts'
import { type Serve, serveNothing } from './serve.ts'

export function addWork(program: Command, cli: Cli): void {
  const command = program
    .command('work')
    .summary('run jobs until told to stop')
    .description('Run jobs until SIGTERM or SIGINT. Then finish or return the running ones and exit 0.')
    .argument('[jobs...]', 'modules (.ts, .js, .mjs) that export jobs with handlers; needed unless --preset is given')
  addPresetOptions(addMetricsOptions(addWorkerOptions(command)), cli)
    .addHelpText(
      'after',
      `${examples([
        ['millrace work jobs.ts', 'every job that jobs.ts exports'],
        ['millrace work jobs/*.ts --concurrency 50', 'more at once'],
        ['millrace work jobs.ts --types greet,bill', 'only some of them; another process runs the rest'],
        ['millrace work jobs.ts --drain 5s', 'wait less for running jobs when stopped'],
        ['millrace work jobs.ts --metrics-port 9100', 'metrics for Prometheus at http://127.0.0.1:9100/metrics'],
        [
          'millrace work --preset escrow --instance 2 --engine kafka://127.0.0.1:9092',
          'more workers of docs/escrow.md',
        ],
      ])}

${DRAIN_HELP}`,
    )
    .action((modules: readonly string[], _options, self: Command) => work(cli, modules, presetFlags<WorkFlags>(self)))
}

type WorkFlags = PresetFlags & WorkerFlags & MetricsFlags

async function work(cli: Cli, modules: readonly string[], flags: WorkFlags): Promise<void> {
  const serve = serveMetrics(cli, flags)
  if (flags.preset !== undefined) {
    if (flags.types !== undefined) throw new OptionError('--preset brings its own jobs; leave out --types')
    return runPreset(cli, flags.preset, flags, { modules, worker: workerOptions(flags), serve: () => serve })
  }
  refusePresetFlags(flags)
  if (modules.length === 0) throw new OptionError('name the modules that export the jobs to run, or add --preset')
  return runWorker(cli, () => loadHandledJobs(modules, flags.types ?? null), flags, serve)
}

/** What signals do to a worker, for help texts. */
export const DRAIN_HELP = `SIGTERM and SIGINT drain: running jobs get 30 seconds (--drain), the rest goes back to the queue. Then it exits 0.
A second signal, more than a second after the first, ends it at once with exit 1. Jobs that were running are recovered when their leases expire, and the attempt counts.
${SIGHUP_HELP}`

export interface WorkerFlags {
  readonly types?: readonly string[]
  readonly concurrency?: number
  readonly ageing?: number
  readonly drain?: number
  readonly poll?: number
  /** False for --no-reap, true without either option. */
  readonly reap: number | boolean
  readonly logLevel: LogLevel
}

export function addWorkerOptions(command: Command): Command {
  return command
    .option('--types <a,b>', 'only these types', (text: string) => namesIn(text, 'names of types, such as greet,bill'))
    .option('--concurrency <n>', 'handlers that run at once (default: 10, or the highest of the types)', wholeNumber)
    .option(
      '--ageing <duration>',
      'raise a waiting job by one priority for each such duration (default: off)',
      duration,
    )
    .option('--drain <duration>', 'how long a stop waits for running handlers (default: 30s)', duration)
    .option(
      '--poll <duration>',
      'the longest wait for a job if a wake-up is missed (default: 1s; Postgres, Redis: as their URL says)',
      duration,
    )
    .option('--reap <duration>', 'how often to look for jobs of dead workers (default: 30s)', duration)
    .option('--no-reap', 'leave reaping to another process')
    .addOption(logLevelOption())
}

export function workerOptions(flags: WorkerFlags): WorkerOptions {
  const { concurrency, ageing, drain, poll, reap } = flags
  return omitUndefined({ concurrency, ageing, drain, poll, reap: reap === true ? undefined : reap })
}

/** Resolves when the worker has stopped and the engine is closed; rejects if a handler broke the process. */
export async function runWorker(
  cli: Cli,
  load: () => Promise<readonly AnyJob[]>,
  flags: SharedOptions & WorkerFlags,
  serve: Serve = serveNothing,
): Promise<void> {
  await runUntilStopped(cli, load, flags, async ({ stop, log, loaded: jobs }) => {
    const mill = await stop.unlessStopped(
      open(flags.engine, { log, clock: cli.clock, ...omitUndefined({ presence: flags.presence }) }),
      (late) => late.close(),
    )
    if (mill === null) return
    try {
      await workUntilStopped(stop, { mill, jobs, log, flags, serve })
    } finally {
      await mill.close()
    }
  })
}

interface Work {
  readonly mill: Mill
  readonly jobs: readonly AnyJob[]
  readonly log: Log
  readonly flags: WorkerFlags
  readonly serve: Serve
}

async function workUntilStopped(stop: StopRequest, { mill, jobs, log, flags, serve }: Work): Promise<void> {
  const serving = await stop.unlessStopped(serve(mill, { jobs, log }), (late) => late.close())
  if (serving === null) return
  try {
    const worker = await stop.unlessStopped(mill.work(jobs, workerOptions(flags)), (late) => late.stop())
    if (worker !== null) await untilStopped(stop, [worker], log)
  } finally {
    await serving.close()
  }
}

/**
 * A promise that a handler forgot to await may reject at any time: it is logged and the worker continues. An exception
 * outside of any promise leaves handlers in an unknown state: the worker drains, so that nothing stays leased, and the
 * process ends with a failure for its supervisor.
 */
export async function untilStopped(stop: StopRequest, workers: readonly Worker[], log: Log): Promise<void> {
  const failures: unknown[] = []
  const ids = { worker_id: workers.map(({ id }) => id).join() }
  const stopAll = (cause: string): void => {
    for (const worker of workers) void worker.stop(cause)
  }
  const onRejection = (error: unknown): void => {
    log.error('Unhandled promise rejection; the worker continues', { ...ids, ...factsOf(error) })
  }
  const onException = (error: unknown): void => {
    log.error('Uncaught exception; the worker stops', { ...ids, ...factsOf(error) })
    failures.push(error)
    stopAll('exception')
  }
  const onStop = (): void => stopAll(String(stop.signal.reason))
  stop.onInsist(() => {
    log.warn('A second signal ends the process at once; jobs that are still leased will be reaped', ids)
    process.exit(EXIT.failed)
  })
  stop.signal.addEventListener('abort', onStop, { once: true })
  if (stop.signal.aborted) onStop()
  process.on('unhandledRejection', onRejection)
  process.on('uncaughtException', onException)
  try {
    await Promise.all(workers.map(({ stopped }) => stopped))
  } finally {
    stop.signal.removeEventListener('abort', onStop)
    process.off('unhandledRejection', onRejection)
    process.off('uncaughtException', onException)
  }
  if (failures.length > 0) throw failures[0]
}

/** Redacted: a handler's error may quote its payload. */
function factsOf(error: unknown): { error: string; code: string | null } {
  const { name, message, code } = toErrorRecord(error)
  return { error: `${name}: ${message}`, code }
}
