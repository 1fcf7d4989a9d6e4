import { useSession } from '../api/context.ts'
import type { Alert } from '../api/shapes.ts'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { Badge } from '../parts/badge.tsx'
import { duration, numeral } from '../parts/format.ts'
import { Card, PageFrame } from '../parts/page.tsx'
import { Answered, EmptyState } from '../parts/states.tsx'
import { Ago, Since } from '../parts/time.tsx'
import { type Label, severityTone } from '../parts/words.ts'
import { type Page, routeTo } from '../router/route.ts'
import { placesFor } from '../shell/navigation.ts'

function labelOf({ status, severity }: Alert): Label {
  switch (status) {
    case 'firing':
      return { text: `Firing · ${severity.toLowerCase()}`, tone: severityTone(severity), icon: 'alerts' }
    case 'pending':
      return { text: `Pending · ${severity.toLowerCase()}`, tone: 'wait', icon: 'clock' }
    case 'resolved':
      return { text: 'Resolved', tone: 'good', icon: 'check' }
    default:
      return status satisfies never
  }
}

const keyOf = ({ rule, labels, sinceMs }: Alert): string => `${rule} ${JSON.stringify(labels)} ${sinceMs}`

export function AlertsPage() {
  const alerts = useAnswer('listAlerts', {})
  useFresh(alerts.reload, { on: ['alert'], everyMs: 10_000 })
  return (
    <PageFrame title="Alerts" lead="What needs attention now, and what was resolved recently.">
      <Answered of={alerts}>
        {({ alerts: all }) => {
          const open = all.filter(({ status }) => status !== 'resolved')
          const resolved = all.filter(({ status }) => status === 'resolved')
          return (
            <>
              {open.length === 0 && (
                <EmptyState icon="check" title="Nothing fires">
                  <p>
                    The rules look at backlog, failures, dead letters, workers and leases, and say here what is wrong.
                  </p>
                </EmptyState>
              )}
              {open.length > 0 && <h2 class="unseen">Open now</h2>}
              <AlertList alerts={open} />
              {resolved.length > 0 && <h2 class="section-title">Resolved lately</h2>}
              <AlertList alerts={resolved} />
            </>
          )
        }}
      </Answered>
    </PageFrame>
  )
}

function AlertList({ alerts }: { readonly alerts: readonly Alert[] }) {
  return (
    <ul class="alerts">
      {alerts.map((alert) => (
        <li key={keyOf(alert)}>
          <AlertCard alert={alert} />
        </li>
      ))}
    </ul>
  )
}

/** What was measured and the threshold, if the rule compares with one. */
function measured({ value, threshold, unit }: Alert): string | null {
  const shown = (number: number): string => {
    if (unit === 'ms') return duration(number)
    return unit === 'share' ? `${Math.round(number * 1_000) / 10} %` : numeral(number)
  }
  if (threshold === null || threshold === undefined) return null
  return value === null || value === undefined
    ? `threshold ${shown(threshold)}`
    : `value ${shown(value)}, threshold ${shown(threshold)}`
}

interface Cause {
  readonly page: Page
  readonly href: string
  readonly text: string
}

/** Where the cause is seen; null when no page shows it. */
function causeOf({ about, labels }: Alert): Cause | null {
  const { type, topic, job } = labels
  if (job !== undefined) return { page: 'jobs', href: routeTo('jobs', job), text: 'See the job' }
  const page = about ?? (topic === undefined ? (type === undefined ? null : 'jobs') : 'topics')
  if (page === null) return null
  const isFiltered = type !== undefined && (page === 'jobs' || page === 'dead-letters')
  return {
    page,
    href: routeTo(page, null, isFiltered ? { type } : {}),
    text: `See the ${page.replace('-', ' ')}${isFiltered ? ` of ${type}` : ''}`,
  }
}

function CauseLink({ alert }: { readonly alert: Alert }) {
  const session = useSession()
  const cause = causeOf(alert)
  const isThere = placesFor(session).some(({ page }) => page === cause?.page)
  return cause === null || !isThere ? null : <a href={cause.href}>{cause.text}</a>
}

/** `docs/runbook.md#…` is a page of the package, which this server shows; another rule may have given a URL or a text. */
const RUNBOOK = /^docs\/runbook\.md(#.*)?$/

function RunbookLink({ runbook }: Alert) {
  if (runbook === undefined) return null
  const anchor = RUNBOOK.exec(runbook)
  const href = anchor === null ? runbook : `runbook${anchor[1] ?? ''}`
  if (anchor === null && !/^https?:/.test(runbook)) return <code>{runbook}</code>
  return (
    <a href={href} target="_blank" rel="noreferrer">
      What to do
    </a>
  )
}

function AlertCard({ alert }: { readonly alert: Alert }) {
  const label = labelOf(alert)
  const value = measured(alert)
  return (
    <Card look={`tone-edge-${label.tone}`}>
      <header class="worker-head">
        <h3>{alert.rule}</h3>
        <Badge {...label} />
      </header>
      <p>{alert.text}</p>
      <p class="quiet alert-foot">
        <CauseLink alert={alert} />
        <RunbookLink {...alert} />
        {value !== null && <span>{value}</span>}
        {alert.resolvedAtMs === null ? (
          <span>
            for <Since atMs={alert.sinceMs} />
          </span>
        ) : (
          <span>
            resolved <Ago atMs={alert.resolvedAtMs} />
          </span>
        )}
        {Object.entries(alert.labels).map(([name, value]) => (
          <code key={name}>
            {name}={value}
          </code>
        ))}
      </p>
    </Card>
  )
}
