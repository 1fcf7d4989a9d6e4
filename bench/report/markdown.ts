/** docs/benchmarks.md, made from the stored results alone: no figure in it is typed by hand. */
import type { Family } from '../families.ts'
import type { MachineFacts, ScenarioResult } from '../result.ts'
import { SCENARIOS } from '../scenarios/index.ts'
import { formatNumber } from './figures.ts'
import { type HookResult, renderHook } from './hook.ts'
import type { ScenarioRuns } from './published.ts'
import { renderScenario, renderTargets } from './tables.ts'
import { renderVectors, type VectorResult } from './vectors.ts'
import { renderWebhooks, type WebhookResult } from './webhooks.ts'

export interface FamilyResults {
  readonly family: Family
  readonly results: readonly ScenarioRuns[]
}

/** The file of a family's picture, beside the page. */
export function pictureOf(family: Family): string {
  return family.name === 'sqlite' ? 'benchmarks.svg' : `benchmarks-${family.name}.svg`
}

/** Null for what was never measured. */
export interface WorkloadResults {
  readonly hook: HookResult | null
  readonly webhooks: WebhookResult | null
  readonly vectors: VectorResult | null
}

const NOTHING: WorkloadResults = { hook: null, webhooks: null, vectors: null }

export function renderMarkdown(
  families: readonly FamilyResults[],
  { hook, webhooks, vectors }: WorkloadResults = NOTHING,
): string {
  if (families.length === 0) return '# Benchmarks\n\nNothing was measured yet: run `npm run bench`.\n'
  const workloads = [
    ...(hook === null ? [] : [renderHook(hook), dated(hook)]),
    ...(webhooks === null ? [] : [renderWebhooks(webhooks), dated(webhooks)]),
    ...(vectors === null ? [] : [renderVectors(vectors), dated(vectors)]),
  ]
  return `${[INTRODUCTION, ...families.flatMap(renderFamily), ...workloads].join('\n\n')}\n`
}

function dated({ date, machine }: HookResult | WebhookResult | VectorResult): string {
  return `${date}: ${describeMachine(machine)}`
}

const INTRODUCTION = `<!-- Made by \`npm run bench\` from bench/results. Do not edit. -->

# Benchmarks

Millrace, its peers and the bare store on the same work, those of one store in one run on one machine. Absolute figures
differ from machine to machine; what carries over is how the contenders compare. What is published of a scenario are its
last three whole runs, made at different times: the middle one and, in brackets, each of them; the figure of a run is the
median of its rounds. A median whose rounds differ by more than a third of it is not published: all rounds of all
contenders are then made anew, up to twice, and if they still differ it says «unsteady» here, and a target that needs the
figure is not judged. Percentiles above the 50th and longest times are exempt, because
one slow moment of the machine decides them: they say less than rates and medians do.`

function renderFamily({ family, results }: FamilyResults): string[] {
  const latest = results.flatMap(({ runs }) => runs.slice(-1))
  return [
    `## ${family.title}`,
    `![Rates on ${family.title} of Millrace, its peers and the bare store](${pictureOf(family)})`,
    renderTargets(results),
    ...results.map(renderScenario),
    renderContenders(latest),
    renderHow(family, latest),
    renderRuns(results),
  ]
}

function renderContenders(results: readonly ScenarioResult[]): string {
  const notes = new Map(results.flatMap((result) => result.contenders.map(({ title, notes }) => [title, notes])))
  return ['### The contenders', '', ...[...notes].map(([title, note]) => `- **${title}.** ${note}`)].join('\n')
}

function renderHow(family: Family, results: readonly ScenarioResult[]): string {
  const sizes = results[0]?.sizes ?? family.sizes
  const rounds = Math.max(...results.flatMap((result) => result.contenders.map(({ rounds }) => rounds.length)))
  const choice = family.name === 'sqlite' ? '' : ` --family ${family.name}`
  const [ours, , peer] = family.contenders
  const all = `npm run bench${choice === '' ? '' : ` --${choice}`}`
  return [
    '### How it is measured',
    '',
    `- ${formatNumber(sizes.jobs)} jobs that do nothing${ofDrain(results)}, payloads of 200 bytes, concurrency ${sizes.concurrency}, ${rounds} rounds.`,
    ...family.terms.map((term) => `- ${term}`),
    `- Every measurement runs in a fresh process, from compiled code as it is installed; contenders take turns, round after round, so that a slow moment of the
  machine meets all of them.`,
    "- Every delivery is counted by the job's index. One job missing, repeated or unknown fails the run, and its scenario is not published.",
    ...onDemandOf(family),
    `- Run it: \`${all}\` (all of it, ${family.duration}), or a part:
  \`npm run bench --${choice} --only drain --contenders ${ours},${peer} --rounds 1 --jobs 5000\`. Only a run of
  standard size is published here; \`--run 1\` begins three new ones, \`--enforce\` makes a missed target an error.`,
  ].join('\n')
}

function onDemandOf(family: Family): string[] {
  const names = SCENARIOS.filter((each) => each.onDemand?.includes(family.name)).map(({ name }) => `\`${name}\``)
  return names.length === 0
    ? []
    : [`- Not part of a whole run, because they take long, and run by name: ${names.join(', ')}.`]
}

/** As it was measured: a result of an earlier day may be of another size than a run of today would have. */
function ofDrain(results: readonly ScenarioResult[]): string {
  const sizes = results.find(({ scenario }) => scenario === 'drain')?.sizes
  if (sizes?.drained === undefined || sizes.drained === sizes.jobs) return ''
  return ` (${formatNumber(sizes.drained)} in the drain)`
}

/** Scenarios may come from different runs; each run is named once. */
function renderRuns(results: readonly ScenarioRuns[]): string {
  const named = new Map<string, string[]>()
  for (const result of results.flatMap(({ runs }) => runs)) {
    const run = `${result.begun.replace('T', ' ').replace('Z', '')}: ${describeMachine(result.machine)}`
    named.set(run, [...(named.get(run) ?? []), result.scenario])
  }
  const lines = [...named].toSorted().map(([run, names]) => `- ${run} (${names.join(', ')})`)
  return ['### The runs', '', ...lines].join('\n')
}

function describeMachine(machine: MachineFacts): string {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`)
  const hardware = `${machine.cores} cores, ${machine.processor}, ${machine.memoryGiB} GiB, ${machine.platform}`
  return `${hardware}; ${versions.join(', ')}; load before the run ${machine.loadBefore}`
}
