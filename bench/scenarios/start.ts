import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import type { Start, Starting } from '../contender.ts'
import { placeWithin } from '../place.ts'
import { ratioOf, type Scenario, type Scene, type Target } from '../scenario.ts'
import { percentile } from '../statistics.ts'
import { drain } from './draining.ts'

/** Programs of which every start enqueues one job. */
const ENQUEUEING: ReadonlySet<string> = new Set(['program', 'enqueue'])
const EMPTY = 'node'

function startingOf(scene: Scene): Starting {
  if (scene.contender.starting === undefined) throw new Error('this contender has no program to start')
  return scene.contender.starting
}

interface Started {
  readonly tookMs: number
  readonly cpuMs: number
}

/** Processor time of all processes that this one has started and that have ended, where the system tells. */
function cpuOfEndedMs(): number {
  if (!existsSync('/proc/self/stat')) return Number.NaN
  // The name of the program may hold spaces; what comes after its bracket does not. Ticks of 10 ms.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) * 10
}

/** From start to exit. */
function startOnce(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Started> {
  return new Promise((resolve, reject) => {
    const cpuBeforeMs = cpuOfEndedMs()
    const startedMs = performance.now()
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    child.once('error', reject)
    child.once('exit', (code) => {
      const tookMs = performance.now() - startedMs
      if (code === 0) resolve({ tookMs, cpuMs: cpuOfEndedMs() - cpuBeforeMs })
      else reject(new Error(`${args.join(' ')} ended with ${code}: ${said}`))
    })
  })
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

const target = (text: string, key: string, limit: number): Target => ({
  family: 'sqlite',
  text: `${text} ≤ ${limit} × \`node -e 0\``,
  bound: '≤',
  limit,
  unit: '×',
  measured: (figure) => ratioOf(figure('millrace-full', key), 1),
})

export const start: Scenario = {
  name: 'start',
  title: 'Start of a process',
  explanation:
    'Whole processes of the packed package, from start to exit, in turns with `node -e 0` of the same Node. «Program» is one that imports the package, opens a SQLite file, enqueues a job and ends; the others are commands of the command line on the same file. Wall time, p50, as a multiple of the empty process; the column «CPU» is the mean processor time of the program as such a multiple. The first of each is not counted. Every job is then delivered and checked.',
  metrics: [
    { key: EMPTY, title: '`node -e 0`', unit: 'ms' },
    { key: 'ms', title: 'program', unit: 'ms' },
    { key: 'program', title: 'program', unit: '×' },
    { key: 'cpu', title: 'program, CPU', unit: '×' },
    { key: 'enqueue', title: '`millrace enqueue`', unit: '×' },
    { key: 'stats', title: '`millrace stats`', unit: '×' },
    { key: 'version', title: '`millrace --version`', unit: '×' },
  ],
  targets: [
    target('a process that imports, opens SQLite, enqueues one and ends takes', 'program', 2.5),
    target('`millrace enqueue` takes', 'enqueue', 3.5),
    target('`millrace stats` takes', 'stats', 3.5),
    target('`millrace --version` takes', 'version', 1.8),
  ],
  families: ['sqlite'],
  prepared: 'package',
  prepare: (scene) => startingOf(scene).install(scene.place),
  async measure(scene) {
    const place = await placeWithin(scene.place)
    let next = 0
    const programs = startingOf(scene).programs(scene.place, place)
    const empty = (): Start => ({ args: ['-e', '0'] })
    const took = new Map<string, Started[]>()
    for (let turn = -1; turn < scene.sizes.starts; turn += 1) {
      for (const [name, program] of [[EMPTY, empty] as const, ...Object.entries(programs)]) {
        const { args, env = {} } = program(next)
        const started = await startOnce(args, env)
        if (ENQUEUEING.has(name)) next += 1
        // The first creates the store and fills the caches of the disk.
        if (turn >= 0) took.set(name, [...(took.get(name) ?? []), started])
      }
    }
    const checker = scene.start('check', place)
    checker.say('count', next)
    const faults = (await checker.hear('faults')) as readonly string[]
    await checker.ended
    const p50 = (name: string): number =>
      percentile(
        (took.get(name) ?? []).map(({ tookMs }) => tookMs),
        50,
      )
    const cpu = (name: string): number => mean((took.get(name) ?? []).map(({ cpuMs }) => cpuMs))
    const times = Object.fromEntries(Object.keys(programs).map((name) => [name, p50(name) / p50(EMPTY)]))
    const values = { [EMPTY]: p50(EMPTY), ms: p50('program'), cpu: cpu('program') / cpu(EMPTY), ...times }
    return { values, faults }
  },
  parts: {
    check: async (scene) => {
      const count = Number(await scene.line.hear('count'))
      const { faults } = await drain(scene, count)
      scene.line.say('faults', faults)
    },
  },
}
