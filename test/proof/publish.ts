/** Writes the totals of runs into docs/proof.md, so that no figure there is typed by hand. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rules } from '../../proof/check/rules/index.ts'
import type { Totals } from './report.ts'

const PAGE = fileURLToPath(new URL('../../docs/proof.md', import.meta.url))
/** What is published, a file for each engine. */
const RESULTS = fileURLToPath(new URL('./results/', import.meta.url))
const ENGINES_SHOWN = ['memory', 'sqlite', 'postgres', 'redis', 'kafka']

/** What the page shows of a run. */
type Published = Pick<
  Totals,
  | ('engine' | 'seed' | 'nemeses' | 'jobsPerRound' | 'faultsPerRound')
  | ('rounds' | 'jobs' | 'starts' | 'repeats' | 'faults' | 'violations' | 'seconds')
>

/** The runs of these files take the place of the earlier ones of their engines. Runs of one engine are added up. */
export function publish(files: readonly string[]): void {
  const runs = files.map((file): Totals => JSON.parse(readFileSync(file, 'utf8')))
  for (const [engine, own] of Map.groupBy(runs, (run) => run.engine))
    writeFileSync(join(RESULTS, `${engine}.json`), `${JSON.stringify(own.map(publishedOf), null, 2)}\n`)
  const page = replaced(readFileSync(PAGE, 'utf8'), 'rules', rulesTable())
  writeFileSync(PAGE, replaced(page, 'figures', figuresOf(published())))
}

export function published(): readonly Published[] {
  const known = ENGINES_SHOWN.filter((engine) => existsSync(join(RESULTS, `${engine}.json`)))
  return known.flatMap((engine) => JSON.parse(readFileSync(join(RESULTS, `${engine}.json`), 'utf8')) as Published[])
}

function publishedOf(run: Totals): Published {
  const { engine, seed, nemeses, jobsPerRound, faultsPerRound, rounds, jobs, starts, repeats, faults } = run
  const { violations, seconds } = run
  return {
    engine,
    seed,
    jobsPerRound,
    faultsPerRound,
    rounds,
    jobs,
    starts,
    repeats,
    violations,
    seconds,
    faults,
    nemeses,
  }
}

/** The page with another text between the two lines that name it. */
export function replaced(page: string, name: string, text: string): string {
  const [first, last] = [`<!-- ${name}: written by npm run proof -- --publish -->`, `<!-- end of ${name} -->`]
  const [begin, end] = [page.indexOf(first), page.indexOf(last)]
  if (begin < 0 || end < begin) throw new Error(`the page has no lines '${first}' and '${last}' to write between`)
  return `${page.slice(0, begin + first.length)}\n\n${text}\n${page.slice(end)}`
}

export function rulesTable(): string {
  const rows = rules.map(({ name, promise }) => `| ${name} | ${promise} |`)
  return ['| rule | what must hold |', '| --- | --- |', ...rows, ''].join('\n')
}

export function figuresOf(runs: readonly Published[]): string {
  const engines = [...Map.groupBy(runs, ({ engine }) => engine)]
  const head = [
    '| engine | jobs | starts | repeated starts | faults | violations | rounds | minutes | seeds |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
  ]
  const rows = engines.map(([engine, own]) => {
    const sum = (of: (run: Published) => number): number => own.reduce((all, run) => all + of(run), 0)
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

function kindsOf(engines: readonly (readonly [string, readonly Published[]])[]): readonly string[] {
  const all = engines.flatMap(([, own]) => own)
  const kinds = [...new Set(all.flatMap(({ faults }) => Object.keys(faults)))].sort()
  const does = Object.assign({}, ...all.map(({ nemeses }) => nemeses))
  const count = (own: readonly Published[], kind: string): number =>
    own.reduce((sum, { faults }) => sum + (faults[kind] ?? 0), 0)
  return [
    `| fault | what it does | ${engines.map(([engine]) => engine).join(' | ')} |`,
    `| --- | --- | ${engines.map(() => '---').join(' | ')} |`,
    ...kinds.map(
      (kind) => `| ${kind} | ${does[kind] ?? ''} | ${engines.map(([, own]) => count(own, kind) || '').join(' | ')} |`,
    ),
  ]
}

function faultsOf({ faults }: Published): number {
  return Object.values(faults).reduce((all, count) => all + count, 0)
}

/** With the options that give the same rounds. */
function seedsOf({ seed, rounds, jobsPerRound, faultsPerRound }: Published): string {
  return `\`--seed ${seed} --rounds ${rounds} --jobs ${jobsPerRound} --faults ${faultsPerRound}\``
}

function thousands(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ' ')
}
