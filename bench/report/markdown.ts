/** docs/benchmarks.md, made from the stored results alone: no figure in it is typed by hand. */
import type { MachineFacts, ScenarioResult } from '../result.ts'
import { formatCell, formatNumber, formatTarget } from './figures.ts'

export function renderMarkdown(results: readonly ScenarioResult[]): string {
  const [first] = results
  if (first === undefined) return '# Benchmarks\n\nNothing was measured yet: run `npm run bench`.\n'
  const parts = [
    INTRODUCTION,
    '![Rates of Millrace, its peers and the bare store](benchmarks.svg)',
    renderTargets(results),
    ...results.map(renderScenario),
    renderContenders(results),
    renderHow(first),
    ...renderMachines(results),
  ]
  return `${parts.join('\n\n')}\n`
}

const INTRODUCTION = `<!-- Made by \`npm run bench\` from bench/results. Do not edit. -->

# Benchmarks

Millrace, its peers and the bare store on the same work, in one run on one machine. Absolute figures differ from machine
to machine; what carries over is how the contenders compare. Figures are medians of the rounds, with their spread in
brackets.`

function renderTargets(results: readonly ScenarioResult[]): string {
  const lines = results.flatMap((result) => result.targets.map((target) => `- ${formatTarget(target)}`))
  return ['## What is promised, and what was measured', '', ...lines].join('\n')
}

function renderScenario(result: ScenarioResult): string {
  const titles = ['', ...result.metrics.map((metric) => metric.title)]
  const rows = result.contenders
    .filter((contender) => contender.excused === null)
    .map((contender) => [contender.title, ...result.metrics.map((metric) => formatCell(contender, metric))])
  const excused = result.contenders
    .filter((contender) => contender.excused !== null)
    .map((contender) => `Not measured: ${contender.title}, which ${contender.excused}.`)
  const table = [titles, titles.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return [`## ${result.title}`, '', result.explanation, '', ...table, ...excused.flatMap((line) => ['', line])].join(
    '\n',
  )
}

function renderContenders(results: readonly ScenarioResult[]): string {
  const notes = new Map(results.flatMap((result) => result.contenders.map(({ title, notes }) => [title, notes])))
  return ['## The contenders', '', ...[...notes].map(([title, note]) => `- **${title}.** ${note}`)].join('\n')
}

function renderHow(result: ScenarioResult): string {
  const { sizes } = result
  const rounds = Math.max(...result.contenders.map((contender) => contender.rounds.length))
  return `## How it is measured

- ${formatNumber(sizes.jobs)} jobs that do nothing, payloads of 200 bytes, concurrency ${sizes.concurrency}, ${rounds} rounds.
- Every measurement runs in a fresh process, from compiled code as it is installed; contenders take turns, round after round, so that a slow moment of the
  machine meets all of them.
- Every delivery is counted by the job's index. One job missing, repeated or unknown fails the run.
- Run it: \`npm run bench\` (all of it, under six minutes), or a part:
  \`npm run bench -- --only drain,bulk --contenders millrace-full,plainjob --rounds 1 --jobs 5000\`. Only a run of
  standard size rewrites this page; \`--enforce\` makes a missed target an error.`
}

/** Scenarios may come from different runs; each machine and day is named once. */
function renderMachines(results: readonly ScenarioResult[]): string[] {
  const runs = new Map<string, string[]>()
  for (const result of results) {
    const run = `${result.date}: ${describeMachine(result.machine)}`
    runs.set(run, [...(runs.get(run) ?? []), result.scenario])
  }
  const lines = [...runs].map(([run, names]) => `- ${run} (${names.join(', ')})`)
  return [['## The machine', '', ...lines].join('\n')]
}

function describeMachine(machine: MachineFacts): string {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`)
  const hardware = `${machine.cores} cores, ${machine.processor}, ${machine.memoryGiB} GiB, ${machine.platform}`
  return `${hardware}; ${versions.join(', ')}; load before the run ${machine.loadBefore}`
}
