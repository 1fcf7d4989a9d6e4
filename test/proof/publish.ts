/** Writes the totals of runs into docs/proof.md, so that no figure there is typed by hand. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Totals } from './report.ts'

const PAGE = fileURLToPath(new URL('../../docs/proof.md', import.meta.url))
const BEGIN = '<!-- figures: npm run proof -- --publish -->'
const END = '<!-- end of figures -->'

/** Runs of one engine are added up. */
export function publish(files: readonly string[]): void {
  const runs = files.map((file): Totals => JSON.parse(readFileSync(file, 'utf8')))
  const page = readFileSync(PAGE, 'utf8')
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`${PAGE} has no lines '${BEGIN}' and '${END}' to write between`)
  writeFileSync(PAGE, `${page.slice(0, begin + BEGIN.length)}\n\n${figuresOf(runs)}\n${page.slice(end)}`)
}

export function figuresOf(runs: readonly Totals[]): string {
  const engines = [...Map.groupBy(runs, ({ engine }) => engine)]
  const head = [
    '| engine | jobs | starts | repeated starts | faults | violations | rounds | minutes | seeds |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
  ]
  const rows = engines.map(([engine, own]) => {
    const sum = (of: (run: Totals) => number): number => own.reduce((all, run) => all + of(run), 0)
    const figures = [
      engine,
      sum(({ jobs }) => jobs),
      sum(({ starts }) => starts),
      sum(({ repeats }) => repeats),
      sum(faultsOf),
      sum(({ violations }) => violations),
      sum(({ rounds }) => rounds),
      (sum(({ seconds }) => seconds) / 60).toFixed(1),
      own.map(seedsOf).join('; '),
    ]
    return `| ${figures.map((figure) => (typeof figure === 'number' ? thousands(figure) : figure)).join(' | ')} |`
  })
  return [...head, ...rows, '', 'Faults by kind:', '', ...kindsOf(engines), ''].join('\n')
}

function kindsOf(engines: readonly (readonly [string, readonly Totals[]])[]): readonly string[] {
  const kinds = [...new Set(engines.flatMap(([, own]) => own.flatMap(({ faults }) => Object.keys(faults))))].sort()
  const count = (own: readonly Totals[], kind: string): number =>
    own.reduce((all, { faults }) => all + (faults[kind] ?? 0), 0)
  return [
    `| fault | ${engines.map(([engine]) => engine).join(' | ')} |`,
    `| --- | ${engines.map(() => '---').join(' | ')} |`,
    ...kinds.map((kind) => `| ${kind} | ${engines.map(([, own]) => count(own, kind) || '').join(' | ')} |`),
  ]
}

function faultsOf({ faults }: Totals): number {
  return Object.values(faults).reduce((all, count) => all + count, 0)
}

/** With the options that give the same rounds. */
function seedsOf({ seed, rounds, jobsPerRound, faultsPerRound }: Totals): string {
  return `\`--seed ${seed} --rounds ${rounds} --jobs ${jobsPerRound} --faults ${faultsPerRound}\``
}

function thousands(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ' ')
}
