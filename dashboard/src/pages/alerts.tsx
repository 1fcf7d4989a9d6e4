import type { Alert } from '../api/shapes.ts'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { Badge } from '../parts/badge.tsx'
import { Card, PageFrame } from '../parts/page.tsx'
import { Answered, EmptyState } from '../parts/states.tsx'
import { Ago, Since } from '../parts/time.tsx'
import { type Label, severityTone } from '../parts/words.ts'

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

function AlertCard({ alert }: { readonly alert: Alert }) {
  const label = labelOf(alert)
  return (
    <Card look={`tone-edge-${label.tone}`}>
      <header class="worker-head">
        <h3>{alert.rule}</h3>
        <Badge {...label} />
      </header>
      <p>{alert.text}</p>
      <p class="quiet alert-foot">
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
