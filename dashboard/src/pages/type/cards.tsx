import type { ShownType } from '../../api/shapes.ts'
import { counted, duration, rate, whole } from '../../parts/format.ts'
import { JobId } from '../../parts/id.tsx'
import { JsonView } from '../../parts/json.tsx'
import { Card } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { type Fact, FactList } from './fact-list.tsx'

type Percentiles = NonNullable<ShownType['recent']>['waiting']

function percentilesText(times: Percentiles): string {
  if (times === null) return '–'
  return `${duration(times.p50)} p50, ${duration(times.p95)} p95, ${duration(times.p99)} p99`
}

/** Now, and what its last jobs took. */
export function FiguresCard({ type }: { readonly type: ShownType }) {
  const { ready, delayed, inProgress, completed, dead, perSecond, recent, oldest, workers } = type
  const facts: readonly Fact[] = [
    ['Jobs', `${whole(ready)} ready, ${whole(delayed)} delayed, ${whole(inProgress)} running`],
    ['Ended', `${whole(completed)} completed, ${whole(dead)} dead`],
    ['Rate', perSecond === null ? '–' : rate(perSecond)],
    ['Oldest due', oldest === null ? 'none' : <Oldest key="oldest" oldest={oldest} />],
    ...(recent === null ? [] : recentFacts(recent)),
    ...(workers === null ? [] : [['Workers', whole(workers)] as const]),
  ]
  return (
    <Card title="Now">
      <FactList facts={facts} />
    </Card>
  )
}

function Oldest({ oldest }: { readonly oldest: NonNullable<ShownType['oldest']> }) {
  return (
    <>
      {oldest.isLeast && 'at least '}
      <Ago atMs={oldest.dueAtMs} /> · <JobId id={oldest.id} />
    </>
  )
}

function recentFacts({ jobs, waiting, running, attempts }: NonNullable<ShownType['recent']>): readonly Fact[] {
  const of = `of the last ${counted(jobs, 'job')} in 15 min`
  return [
    ['Waiting', percentilesText(waiting)],
    ['Running', percentilesText(running)],
    ['Attempts', attempts === null ? '–' : `${attempts.toFixed(2)} a job, ${of}`],
  ]
}

const LACKS = {
  none: 'It has no schema: any JSON is taken.',
  unreadable: 'It has no schema that can be shown.',
  large: 'Its schema is too long to be shown.',
} as const

/** As this server has it, or as the worker that started last has published it. */
export function DefinitionCard({ type: { definition, defined } }: { readonly type: ShownType }) {
  if (definition === null) {
    return (
      <Card title="Definition">
        <p class="quiet">No worker has said what its definition is. It is shown once one has started.</p>
      </Card>
    )
  }
  const { schema, schemaLacks } = definition
  return (
    <Card title="Definition" aside={<span class="quiet">{defined ? 'of this server' : 'as its worker says'}</span>}>
      <FactList facts={definitionFacts(definition)} />
      {schema === null ? (
        <p class="quiet">{LACKS[schemaLacks ?? 'none']}</p>
      ) : (
        <JsonView value={schema} what="schema" />
      )}
    </Card>
  )
}

function definitionFacts(definition: NonNullable<ShownType['definition']>): readonly Fact[] {
  const { version, attempts, backoff, timeoutMs, leaseMs, priority, critical, retention, names } = definition
  const ages = Object.entries(retention).map(([what, ms]) => `${what} ${ms === null ? 'for ever' : duration(ms)}`)
  const { keepCompleted, keepDead } = definition
  const facts: readonly (Fact | false)[] = [
    ['Version', version],
    ['Attempts', attempts],
    ['Backoff', <code key="backoff">{JSON.stringify(backoff)}</code>],
    ['Timeout', duration(timeoutMs)],
    ['Lease', duration(leaseMs)],
    ['Priority', priority],
    critical && ['Critical', 'yes: its dead letters are removed only with force'],
    ages.length > 0 && ['Kept', ages.join(', ')],
    keepCompleted !== null && ['Completed kept', whole(keepCompleted)],
    keepDead !== null && ['Dead kept', whole(keepDead)],
    names.length > 0 && ['Names', names.join(', ')],
  ]
  return facts.filter((fact) => fact !== false)
}
