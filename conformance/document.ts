/** Turns what the engines declare and what the suite holds them to into docs/engines.md. */
import type { Capabilities } from '../src/engine/capabilities.ts'
import type { Engine } from '../src/engine/engine.ts'
import { LEVELS, type Level } from './case.ts'
import { KEPT, type Matrix } from './matrix.ts'
import { table } from './table.ts'

export interface Documented {
  readonly capabilities: Readonly<Record<string, Capabilities>>
  readonly facets: Readonly<Record<string, readonly FacetName[]>>
  readonly matrix: Matrix
}

/** What a value means for someone who plans with it. */
const consequences: { readonly [Name in keyof Capabilities]: (value: Capabilities[Name]) => string } = {
  scope: (value) =>
    ({
      store: 'in the whole store',
      type: 'within a type: what would join two types is refused',
    })[value],
  survives: (value) =>
    ({
      nothing: 'nothing: acknowledged jobs end with their process',
      'process-crash': 'the crash of any process: acknowledged jobs are on disk',
    })[value],
  settle: (value) =>
    value === 'immediate'
      ? 'immediate: a settled job is settled, whatever crashes next'
      : 'watermark: finished work above the watermark may run again after a crash',
  recovery: (value) =>
    ({
      reaper: 'by the reaper that every worker runs',
      engine: 'by the engine itself',
    })[value],
  recoveryMaxMs: (value) => `within ${milliseconds(value)} after the lease`,
  enqueueDelayMaxMs: (value) => (value === 0 ? 'cannot delay a job' : upTo(value)),
  retryDelayMaxMs: (value) => (value === 0 ? 'cannot delay a retry' : upTo(value)),
  order: (value) =>
    ({
      fifo: 'arrival',
      'per-key': 'arrival within a key',
      priority: 'priority, then as they became ready',
      'ageing-priority': 'priority, then due time, then arrival; with `ageing`, jobs that wait gain priority',
    })[value],
  keys: (value) =>
    ({
      refused: 'refused',
      partition: 'a key keeps order and refuses nothing',
      'unique-live': 'one live job per key; a second enqueue gets the first one’s id',
    })[value],
  latest: (value) => (value ? 'the newest version of a key wins; one in flight per key' : 'refused'),
  idempotentEnqueue: (value) =>
    value ? 'repeating an enqueue after a lost reply is harmless' : 'a repeated enqueue is stored again',
  enqueueAtomic: (value) => (value ? 'a batch is stored whole or not at all' : 'a failed batch may be stored in part'),
  transactionalEnqueue: (value) =>
    value ? 'a job commits with your own rows (`within`)' : 'refused: enqueue after your commit',
  limits: (value) => (value === 'shared' ? 'hold over all workers' : 'refused'),
  slots: (value) =>
    value === 'shared'
      ? 'hold over all workers, for a type or for each tenant'
      : 'refused: a number holds in each worker',
  dependencies: (value) => (value ? 'a job can wait for others (`after`)' : 'refused'),
}

const subjects: { readonly [Name in keyof Capabilities]: string } = {
  scope: 'Keys, batches, flows and order hold',
  survives: 'Survives',
  settle: 'Settling',
  recovery: 'Expired leases come back',
  recoveryMaxMs: 'How soon',
  enqueueDelayMaxMs: 'Delayed jobs',
  retryDelayMaxMs: 'Delayed retries',
  order: 'Order',
  keys: 'Idempotency keys',
  latest: 'Latest keys',
  idempotentEnqueue: 'Repeated enqueue',
  enqueueAtomic: 'Batches',
  transactionalEnqueue: 'Your own transaction',
  limits: 'Rate limits',
  slots: 'Concurrency over all workers',
  dependencies: 'Dependencies',
}

type FacetRow = readonly [subject: string, there: string, absent: string]

/** What a facet means for a user: its subjects, each with what holds where the facet is there, and where it is not. */
const facetRows = {
  deadLetters: [
    ['Dead letters', 'listed, put back with all their options, discarded, removed; every act audited', 'not kept'],
  ],
  inspector: [['Looking at jobs', 'jobs can be found, listed and waited for', 'refused']],
  controls: [['Cancelling', 'also of a job that runs', 'refused']],
  records: [
    ['Schedules', 'stored; a tick is enqueued with the record that it was', 'refused'],
    ['Keepers', 'one keeper at a time over all processes', 'every keeper works'],
    ['Presence', 'every process sees every worker and what it runs', 'kept elsewhere (`attachPresence`)'],
    ['Pausing', 'single types, over all workers, within a second', 'refused'],
  ],
  retention: [['Retention', 'by age, by number, by bytes', 'refused']],
  logs: [['Logs of jobs', 'what handlers say is kept with their jobs, and goes with them', 'not kept']],
  diagnose: [['Diagnosis', 'examines its own store (`millrace doctor`)', 'refused: nothing to examine']],
} as const satisfies Partial<Record<keyof Engine, readonly FacetRow[]>>

export type FacetName = keyof typeof facetRows

export function facetsOf(engine: Engine): readonly FacetName[] {
  // The keys are exactly those above.
  return (Object.keys(facetRows) as FacetName[]).filter((name) => engine[name] !== undefined)
}

const levelTitles: Readonly<Record<Level, string>> = {
  port: 'Level 1: the port',
  client: 'Level 2: the client and the worker',
  process: 'Level 3: real processes',
}

const DAY_MS = 86_400_000

function milliseconds(ms: number): string {
  if (ms % DAY_MS === 0) return `${ms / DAY_MS} d`
  return ms % 1_000 === 0 ? `${ms / 1_000} s` : `${ms} ms`
}

const upTo = (ms: number): string => (Number.isFinite(ms) ? `up to ${milliseconds(ms)}` : 'by any time')

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const head = (cells: readonly string[]): readonly string[] => [row(cells), row(cells.map(() => '---'))]

export function documentEngines({ capabilities, facets, matrix }: Documented): string {
  const names = Object.keys(matrix)
  const lines = [
    '# Engines',
    '',
    'Written by `npm run matrix` from what the engines declare and from the conformance suite; change those, not this page.',
    '',
    '## What each engine promises',
    '',
    ...head(['', ...names]),
    ...promises(capabilities, names),
    ...facetPromises(facets, names),
    '',
    '## What each engine is excused from',
    '',
    'An excuse follows from the promises above. In place of the excused case the suite checks that the engine refuses',
    'loudly and that nothing is changed.',
    '',
    ...names.flatMap((name) => excuses(name, matrix[name] ?? {})),
    '## What the suite has shown',
    '',
    '✓: the case has passed. ○: excused, and the refusal has passed. The guarantees are those of the README.',
    '',
    ...LEVELS.flatMap((level) => levelSection(level, names, matrix)),
  ]
  return `${lines.join('\n').trimEnd()}\n`
}

function promises(capabilities: Documented['capabilities'], names: readonly string[]): readonly string[] {
  const told = <Name extends keyof Capabilities>(of: Capabilities, name: Name): string => consequences[name](of[name])
  // The keys of `subjects` are exactly those of Capabilities: the compiler holds it to that.
  const subjectNames = Object.keys(subjects) as (keyof Capabilities)[]
  return subjectNames.map((name) =>
    row([
      `**${subjects[name]}**`,
      ...names.map((engine) => {
        const of = capabilities[engine]
        return of === undefined ? '' : told(of, name)
      }),
    ]),
  )
}

function facetPromises(facets: Documented['facets'], names: readonly string[]): readonly string[] {
  return Object.entries(facetRows).flatMap(([name, rows]) =>
    rows.map(([subject, there, absent]) =>
      row([
        `**${subject}**`,
        ...names.map((engine) => (facets[engine]?.some((facet) => facet === name) ? there : absent)),
      ]),
    ),
  )
}

function excuses(name: string, answers: Readonly<Record<string, string>>): readonly string[] {
  const sentences = Map.groupBy(
    Object.values(answers).filter((answer) => answer !== KEPT),
    (sentence) => sentence,
  )
  if (sentences.size === 0) return [`**${name}** is excused from nothing.`, '']
  const lines = [...sentences].map(([sentence, cases]) => `- It ${sentence} (${cases.length} cases).`)
  return [`**${name}** is excused where it says so:`, '', ...lines, '']
}

function levelSection(level: Level, names: readonly string[], matrix: Matrix): readonly string[] {
  const files = table.filter((file) => file.level === level)
  const lines = files.flatMap(({ concept, cases }) => [
    row([`**${concept}**`, '', ...names.map(() => '')]),
    ...cases.map(({ name, guarantees }) =>
      row([name, guarantees.join(' '), ...names.map((engine) => (matrix[engine]?.[name] === KEPT ? '✓' : '○'))]),
    ),
  ])
  return [`### ${levelTitles[level]}`, '', ...head(['case', 'guarantees', ...names]), ...lines, '']
}
