import type { Command } from 'commander'
import { diagnose } from '../../engine/admission.ts'
import type { Finding } from '../../engine/diagnosis.ts'
import { EngineError } from '../../errors.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { printable, type Style, type Terminal } from '../terminal.ts'

interface DoctorOptions extends SharedOptions {
  readonly deep?: true
}

export function addDoctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .summary('find what is wrong with the store')
    .description('Look for what is wrong with the store and its jobs, and say what to do. It changes nothing.')
    .option('--deep', 'also read the whole store for damage; it may take minutes')
    .addHelpText(
      'after',
      `${examples([
        ['millrace doctor', 'a report; exit 1 if anything is an error'],
        ['millrace doctor --deep', 'after a crash of the machine, or before a backup'],
        [`millrace doctor --json | jq 'select(.severity != "ok")'`, 'a line per finding'],
      ])}

Errors mean that jobs are lost, stuck or in danger now; warnings, that someone should look.`,
    )
    .action((_options, command: Command) => examine(cli, command.optsWithGlobals<DoctorOptions>()))
}

async function examine(cli: Cli, options: DoctorOptions): Promise<void> {
  const findings = await withExistingMill(cli, options.engine, async (mill) =>
    diagnose(mill.engine, { deep: options.deep === true }),
  )
  printFindings(cli.terminal, findings, options.json === true)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  if (errors === 0) return
  throw new EngineError(
    'ERR_UNHEALTHY',
    `the doctor found ${errors} error${errors === 1 ? '' : 's'}; do what the report says, then run it again`,
  )
}

const MARKS: Readonly<Record<Finding['severity'], readonly [Style, string]>> = {
  ok: ['green', 'ok'],
  warning: ['yellow', 'warning'],
  error: ['red', 'error'],
}

/** Findings name types and other programs' SQL, so every part is made printable. */
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
