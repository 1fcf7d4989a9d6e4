import type { Command } from 'commander'
import type { Mill } from '../../client/mill.ts'
import { diagnose } from '../../engine/capability-checks.ts'
import type { DiagnoseOptions, Finding } from '../../engine/engine.ts'
import { judgeLimits, limitsIn } from '../../engine/limits.ts'
import { EngineError, OptionError } from '../../errors.ts'
import { parseDurationMs } from '../../time/duration.ts'
import { tableNames } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { printable, type Style, type Terminal } from '../terminal.ts'

interface DoctorOptions extends SharedOptions {
  readonly deep?: true
  readonly lag?: LagLimits
  readonly handlers?: string
  readonly tables?: readonly string[]
}

type LagLimits = NonNullable<DiagnoseOptions['lag']>

export function addDoctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .summary('find problems of the store')
    .description('Find problems of the store and its jobs, and say what to do. It changes nothing.')
    .option('--deep', 'also read the whole store for damage; can take minutes')
    .option('--lag <type=n,m>', 'warn above n waiting jobs of a type, fail above m (Kafka); can be repeated', parseLag)
    .option('--handlers <duration>', 'how long your handlers take at most, to check the timeouts (Kafka)')
    .option('--tables <names>', 'examine your own job tables on Postgres instead', tableNames)
    .addHelpText(
      'after',
      `${examples([
        ['millrace doctor', 'a report; exit 1 if anything is an error'],
        ['millrace doctor --deep', 'after a machine crash, or before a backup'],
        ['millrace doctor --lag escrow.commands=100,500 --lag deal.events=500,2000', 'with your own limits'],
        ['millrace doctor --tables jobs,asr_jobs', 'stuck rows, missing columns and indexes, whether a reaper runs'],
        [`millrace doctor --json | jq 'select(.severity != "ok")'`, 'a line per finding'],
      ])}

An error means that jobs are lost, stuck or at risk. A warning needs a look.`,
    )
    .action((_options, command: Command) => examine(cli, command.optsWithGlobals<DoctorOptions>()))
}

const LAG = /^(.+)=(\d+),(\d+)$/

/** One per type. */
function parseLag(text: string, before: LagLimits = {}): LagLimits {
  const [, type, warning, critical] = LAG.exec(text) ?? []
  if (type !== undefined && Number(warning) <= Number(critical))
    return { ...before, [type]: { warning: Number(warning), critical: Number(critical) } }
  throw new OptionError(`'lag' is '${text}'; give a type and two rising numbers, such as greet=100,500`)
}

async function examine(cli: Cli, options: DoctorOptions): Promise<void> {
  const findings = await findingsOf(cli, options)
  printFindings(cli.terminal, findings, options.json === true)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  if (errors === 0) return
  throw new EngineError(
    'ERR_UNHEALTHY',
    `the doctor found ${errors} error${errors === 1 ? '' : 's'}; follow the report, then run it again`,
  )
}

async function findingsOf(cli: Cli, options: DoctorOptions): Promise<readonly Finding[]> {
  const { deep = false, lag, handlers, tables } = options
  if (tables !== undefined) {
    if (deep || lag !== undefined || handlers !== undefined)
      throw new OptionError('--tables examines tables of your own; leave out --deep, --lag and --handlers')
    const { jobTables } = await cli.extensions.jobTables()
    return jobTables.examine(options.engine, tables, { environment: process.env })
  }
  const asked: DiagnoseOptions = {
    deep,
    ...(lag && { lag }),
    ...(handlers !== undefined && { handlerMs: parseDurationMs(handlers, 'handlers') }),
  }
  return withExistingMill(cli, options, async (mill) => [
    ...(await diagnose(mill.engine, asked)),
    ...(await limitFindings(cli, mill)),
  ])
}

/** None where the engine keeps no changed limits. */
async function limitFindings({ clock }: Cli, { engine }: Mill): Promise<readonly Finding[]> {
  const overrides = (await limitsIn(engine)?.list()) ?? []
  return overrides.length === 0 ? [] : judgeLimits(overrides, await engine.counts(), clock.nowMs())
}

const MARKS: Readonly<Record<Finding['severity'], readonly [Style, string]>> = {
  ok: ['green', 'ok'],
  warning: ['yellow', 'warning'],
  error: ['red', 'error'],
}

/** Findings quote types and foreign SQL, so every part is made printable. */
export function printFindings(terminal: Terminal, findings: readonly Finding[], json: boolean): void {
  if (json) {
    for (const finding of findings) terminal.print(JSON.stringify(finding))
    return
  }
  const width = Math.max(...findings.map(({ subject }) => subject.length))
  for (const { severity, subject, detail, advice } of findings) {
    const [style, word] = MARKS[severity]
    const mark = terminal.paint(style, word.padEnd('warning'.length))
    terminal.print(`${mark}  ${terminal.paint('bold', subject.padEnd(width))}  ${printable(detail)}`)
    if (advice !== null) terminal.print(`${' '.repeat('warning'.length + width + 4)}→ ${printable(advice)}`)
  }
  const count = (of: Finding['severity']): number => findings.filter(({ severity }) => severity === of).length
  terminal.print(`\n${count('error')} errors, ${count('warning')} warnings, ${count('ok')} in order.`)
}
