/** The files of examples/deploy, and their commands run as processes of this machine. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { defineJob, type Mill, open } from 'millrace'
import { parseAllDocuments } from 'yaml'
import { publishedManifest } from '../../scripts/package.ts'
import { parseDurationMs } from '../../src/time/duration.ts'
import { MAIN, ROOT, Running, type Settings, temporaryFolder } from '../cli/run.ts'

export const DEPLOY = join(ROOT, 'examples/deploy')
/** Where an installed package has the command line. */
export const INSTALLED = join('node_modules/millrace', publishedManifest().bin.millrace ?? '')
/** A stop takes at most the drain and this. */
export const STOP_EXTRA_MS = 8_000

export const readDeployed = (file: string): string => readFileSync(join(DEPLOY, file), 'utf8')

/** Every document of a YAML file. A fault in one fails the test. */
export function documentsOf(file: string): readonly unknown[] {
  return parseAllDocuments(readDeployed(file), { merge: true }).map((document) => {
    for (const fault of document.errors) throw fault
    return document.toJS()
  })
}

export interface Instruction {
  readonly name: string
  readonly text: string
}

/** With joined lines, without comments. */
export function dockerfile(): readonly Instruction[] {
  return readDeployed('Dockerfile')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [, name = '', text = ''] = /^(\w+) (.*)$/.exec(line) ?? []
      return { name, text }
    })
}

/** The last instruction of this name, which is the one that counts. */
export function instruction(name: string): string {
  return dockerfile().findLast((one) => one.name === name)?.text ?? ''
}

/** The exec form: a shell form would make a shell the process that gets the signals. */
export function execForm(text: string): readonly string[] {
  return JSON.parse(text.slice(text.indexOf('[')))
}

export function drainMsOf(args: readonly string[]): number {
  return parseDurationMs(args[args.indexOf('--drain') + 1] ?? '', 'drain')
}

/** The same command for this machine: any free port, on its loopback, with the jobs where they are. */
export function localArguments(args: readonly string[]): readonly string[] {
  const here = args.map((arg) => {
    if (arg === 'jobs.ts') return join(DEPLOY, 'jobs.ts')
    if (arg === '0.0.0.0') return 'localhost'
    return arg === '7420' ? '0' : arg
  })
  return here[0] === 'serve' ? [...here, '--port', '0'] : here
}

export interface Deployed {
  readonly running: Running
  readonly mill: Mill
  /** Where it serves health and metrics. */
  address(): Promise<string>
}

export interface Where extends Pick<Settings, 'env' | 'under'> {
  /** Default: SQLite in a temporary folder. */
  readonly engine?: string
}

/** Starts what a file says, as the supervisor would. */
export async function startDeployed(t: TestContext, args: readonly string[], where: Where = {}): Promise<Deployed> {
  const cwd = await temporaryFolder(t)
  const url = where.engine ?? `sqlite:${join(cwd, 'millrace.db')}`
  const mill = await open(url)
  t.after(() => mill.close())
  const settings = { cwd, ...where, env: { MILLRACE_ENGINE: url, ...where.env } }
  const running = new Running(MAIN, localArguments(args), settings)
  t.after(() => running.child.kill('SIGKILL'))
  return {
    running,
    mill,
    async address() {
      const served = /"url":"(http:\/\/localhost:\d+)/
      await running.said(served)
      return served.exec(running.output)?.[1] ?? ''
    },
  }
}

/** Stops it in the middle of a job, and says how it went. */
export async function stopInJob(
  { running, mill }: Deployed,
  stop: () => void,
): Promise<{ readonly code: number | null; readonly state: string | undefined; readonly tookMs: number }> {
  const { id } = await mill.enqueue(defineJob({ type: 'tidy' }), null)
  await running.said('Job started')
  const startedMs = performance.now()
  stop()
  const { code } = await running.ended
  return { code, state: (await mill.job(id))?.state, tookMs: performance.now() - startedMs }
}
