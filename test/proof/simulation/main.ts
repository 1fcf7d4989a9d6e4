/** `npm run simulate`: many seeds on one engine, one plan again, or every wrong engine. */
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { shrink } from '../../../proof/simulation/shrink.ts'
import { type Simulated, simulate } from '../../../proof/simulation/simulate.ts'
import { type CreateStore, memoryStore, sqliteStore } from '../../../proof/simulation/stores.ts'
import { tryMutants } from './mutants.ts'

const HELP = `npm run simulate -- [options]

  --engine memory|sqlite  which engine (default: memory)
  --seeds <n>             how many seeds (default: 1000)
  --from <n>              the first seed (default: 1)
  --threads <n>           how many threads share them (default: 2)
  --replay <file>         plays the plan of a failing run again, and prints its history
  --mutants               every wrong engine, each with up to --seeds seeds, until it is found

It exits with 1 when a rule was broken, or a wrong engine was not found.
`

const STORES: Readonly<Record<string, CreateStore>> = { memory: memoryStore, sqlite: sqliteStore }

// Stacks of errors cost more than everything else, and no rule reads them.
Error.stackTraceLimit = 0

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'memory' },
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    threads: { type: 'string', default: '2' },
    replay: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const create = STORES[values.engine]
if (values.help) console.log(HELP)
else if (create === undefined) throw new Error(`'--engine' is '${values.engine}'; give memory or sqlite`)
else if (values.replay !== undefined) await replay(create, values.replay)
else if (values.mutants) process.exitCode = (await tryMutants(count('seeds'))) ? 0 : 1
else await trySeeds(create)

function count(name: 'seeds' | 'from' | 'threads'): number {
  const number = Number(values[name])
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`'--${name}' is '${values[name]}'; give a whole number from 1`)
  return number
}

async function trySeeds(create: CreateStore): Promise<void> {
  const [seeds, from, threads] = [count('seeds'), count('from'), count('threads')]
  const startedMs = performance.now()
  const seconds = (): string => ((performance.now() - startedMs) / 1_000).toFixed(1)
  const done = { seeds: 0, jobs: 0, starts: 0, faults: 0 }
  const failed = await new Promise<number | null>((resolve, reject) => {
    let running = threads
    for (let thread = 0; thread < threads; thread += 1) {
      const workerData = { engine: values.engine, first: from + thread, last: from + seeds - 1, step: threads }
      const worker = new Worker(new URL('./thread.ts', import.meta.url), { workerData })
      worker.on(
        'message',
        (message: { seed: number; isBroken: boolean; jobs: number; starts: number; faults: number }) => {
          done.seeds += 1
          done.jobs += message.jobs
          done.starts += message.starts
          done.faults += message.faults
          if (message.isBroken) resolve(message.seed)
          if (done.seeds % 500 === 0) console.log(`${done.seeds} of ${seeds} seeds in ${seconds()} s`)
        },
      )
      worker.on('error', reject)
      worker.on('exit', () => {
        running -= 1
        if (running === 0) resolve(null)
      })
      worker.unref()
    }
    // The threads alone do not keep the process alive.
    const alive = setInterval(() => {}, 60_000)
    process.once('beforeExit', () => clearInterval(alive))
  })
  const tally = `${done.jobs} jobs, ${done.starts} starts, ${done.faults} faults`
  if (failed === null) {
    console.log(`${values.engine}: ${done.seeds} seeds, ${tally}, ${seconds()} s: no rule was broken`)
    process.exit(0)
  }
  console.log(
    `${values.engine}: after ${done.seeds} seeds and ${seconds()} s, seed ${failed} broke a rule; it is made small`,
  )
  report(await shrink({ create, failed: await simulate({ create, plan: failed }) }))
  process.exit(1)
}

function report({ plan, verdict }: Simulated): void {
  const file = join(tmpdir(), `simulation-${values.engine}-${plan.seed}.json`)
  writeFileSync(file, JSON.stringify(plan))
  for (const { rule, sentence } of verdict.violations.slice(0, 5)) console.log(`${rule}: ${sentence}`)
  const { choices, ...program } = plan
  console.log(JSON.stringify(program, null, 2))
  console.log(`${(choices ?? []).filter((choice) => choice !== 0).length} choices are not the plain one`)
  console.log(`To play it again: npm run simulate -- --engine ${values.engine} --replay ${file}`)
}

async function replay(create: CreateStore, file: string): Promise<void> {
  const { history, verdict } = await simulate({ create, plan: JSON.parse(readFileSync(file, 'utf8')) })
  for (const entry of history) console.log(JSON.stringify(entry))
  for (const { rule, sentence } of verdict.violations) console.log(`${rule}: ${sentence}`)
  process.exitCode = verdict.violations.length === 0 ? 0 : 1
}
