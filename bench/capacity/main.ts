/** Which engine, how many servers: npm run capacity -- --jobs-per-day 500M --p99 100ms */
import { parseArgs } from 'node:util'
import { parseDurationMs } from '../../src/time/duration.ts'
import { type Measured, storedRuns } from './measure.ts'
import { assumptionsOf, choose, type Load, medianCosts, peakRate, planFor } from './model.ts'

const USAGE = `npm run capacity -- [options]

  --jobs-per-day N   with k, M or G (default: 1M)
  --p99 duration     the longest wait for a start, for 99 of 100 jobs (default: 1s)
  --peak N           the busiest second against the mean (default: 3)
  --handler duration processor time of a handler (default: 1ms)
  --keep days        how long finished jobs are kept (default: 7)
  --cores N          of one server (default: 8)
  --memory GB        of one server (default: 64)`

const UNITS: Readonly<Record<string, number>> = { k: 1e3, M: 1e6, G: 1e9 }

function amount(name: string, text: string): number {
  const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?)([kMG]?)$/.exec(text) ?? []
  const value = Number(digits) * (UNITS[unit] ?? 1)
  if (digits === '' || value <= 0) throw new Error(`--${name} is '${text}'; give a number above 0 such as 500M`)
  return value
}

export function readLoad(args: readonly string[]): Load {
  const text = (otherwise: string) => ({ type: 'string' as const, default: otherwise })
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ 'jobs-per-day': text('1M'), p99: text('1s'), peak: text('3') },
      ...{ handler: text('1ms'), keep: text('7'), cores: text('8'), memory: text('64') },
    },
  })
  return {
    jobsPerDay: amount('jobs-per-day', values['jobs-per-day']),
    p99Ms: parseDurationMs(values.p99, 'p99'),
    peak: amount('peak', values.peak),
    handlerMs: parseDurationMs(values.handler, 'handler'),
    keepDays: amount('keep', values.keep),
    cores: amount('cores', values.cores),
    memoryGb: amount('memory', values.memory),
  }
}

export function report(runs: readonly Measured[], load: Load): readonly string[] {
  const last = runs.at(-1)
  if (last === undefined) throw new Error('no costs were measured yet; run npm run bench:capacity first')
  const { machine, date } = last
  const plans = medianCosts(runs.map(({ costs }) => costs)).map((cost) => planFor(cost, load))
  const best = choose(plans)
  const rows = plans.map(({ engine, refusal, servers, processes, utilisation, storedGb }) =>
    [
      engine.padEnd(9),
      (refusal === null ? (servers === 0 ? 'a file' : `${servers} server${servers === 1 ? '' : 's'}`) : 'no').padEnd(
        11,
      ),
      `${processes} cores`.padStart(10),
      `${Math.round(utilisation * 100)} %`.padStart(7),
      (storedGb === null ? 'retention' : `${storedGb.toFixed(1)} GB`).padStart(10),
      refusal ?? '',
    ].join('  '),
  )
  return [
    `${Math.round(peakRate(load)).toLocaleString('en')} jobs per second at the busiest time; p99 of waiting below ${load.p99Ms} ms`,
    '',
    `${'engine'.padEnd(9)}  ${'store'.padEnd(11)}  ${'producers'.padStart(10)}  ${'store'.padStart(7)}  ${'kept'.padStart(10)}`,
    `${''.padEnd(9)}  ${''.padEnd(11)}  ${'& workers'.padStart(10)}  ${'used'.padStart(7)}`,
    ...rows,
    '',
    best === null
      ? 'None of them carries it with one store; split the types over several.'
      : `Start with ${best.engine}.`,
    '',
    `Assumptions (median costs of ${runs.length} run${runs.length === 1 ? '' : 's'}, the last at ${date} UTC: ${machine.processor}, ${machine.cores} cores):`,
    ...assumptionsOf(load).map((line) => `- ${line}`),
  ]
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  try {
    console.log(args.includes('--help') ? USAGE : report(storedRuns(), readLoad(args)).join('\n'))
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    process.exitCode = 2
  }
}
