import type { Webhook } from '../../api/shapes.ts'
import { Badge } from '../../parts/badge.tsx'
import { ActButton } from '../../parts/fields.tsx'
import { duration, whole } from '../../parts/format.ts'
import { type Column, Table } from '../../parts/table.tsx'
import { MaybeAgo } from '../../parts/time.tsx'
import { routeTo } from '../../router/route.ts'
import type { Ask } from './deeds.tsx'

export function nameOf({ description, origin }: Webhook): string {
  return description ?? origin.replace(/^https:\/\//, '')
}

interface EndpointsProps {
  readonly all: readonly Webhook[]
  readonly chosen: string | undefined
  readonly ask: Ask
}

export function Endpoints({ all, chosen, ask }: EndpointsProps) {
  const columns: readonly Column<Webhook>[] = [
    {
      key: 'name',
      title: 'Endpoint',
      wide: true,
      narrow: 'lead',
      cell: (one) => <Named webhook={one} isChosen={one.id === chosen} />,
    },
    { key: 'delivered', title: 'Delivered', align: 'end', cell: (one) => <Figure value={one.successCount} /> },
    { key: 'failed', title: 'Failed', align: 'end', cell: (one) => <Figure value={one.failureCount} /> },
    {
      key: 'latency',
      title: 'Latency',
      align: 'end',
      // Of what was delivered.
      cell: ({ successCount, avgLatencyMs }) => (successCount === 0 ? '–' : duration(avgLatencyMs)),
    },
    {
      key: 'last',
      title: 'Last delivered',
      cell: (one) => <MaybeAgo atMs={one.lastDeliveredAtMs} otherwise="never" />,
    },
    { key: 'act', title: 'Actions', narrow: 'line', cell: (one) => <EndpointActs webhook={one} ask={ask} /> },
  ]
  return (
    <div class="card flush">
      <Table caption="Endpoints" columns={columns} rows={all} keyOf={({ id }) => id} />
    </div>
  )
}

function Figure({ value }: { readonly value: number }) {
  return <span class="figures">{whole(value)}</span>
}

function State({ webhook: { isEnabled, disabledReason } }: { readonly webhook: Webhook }) {
  if (isEnabled) return <Badge text="Enabled" tone="good" icon="check" />
  const isOwn = disabledReason === 'max_failures_exceeded'
  return (
    <>
      <Badge text={isOwn ? 'Failed too often' : 'Disabled'} tone="bad" icon="pause" />
      {!isOwn && disabledReason !== null && <span class="quiet"> “{disabledReason}”</span>}
    </>
  )
}

const EVENTS_SHOWN = 4

function Events({ events }: { readonly events: readonly string[] }) {
  const more = events.length - EVENTS_SHOWN
  if (more <= 1) return <div class="quiet">{events.join(', ')}</div>
  return (
    <details class="quiet">
      <summary>
        {events.slice(0, EVENTS_SHOWN).join(', ')} and {more} more
      </summary>
      {events.slice(EVENTS_SHOWN).join(', ')}
    </details>
  )
}

function Named({ webhook, isChosen }: { readonly webhook: Webhook; readonly isChosen: boolean }) {
  const { id, origin, tenant, events } = webhook
  const href = routeTo('webhooks', null, isChosen ? {} : { webhook: id })
  return (
    <div class="endpoint">
      <a href={href} title={isChosen ? 'Show the deliveries of all endpoints' : 'Show its deliveries only'}>
        <bdi>{nameOf(webhook)}</bdi>
      </a>
      {isChosen && ' (shown below)'}
      <div>
        <State webhook={webhook} />
      </div>
      <div class="quiet">{[origin, tenant].filter((part) => part !== null).join(' · ')}</div>
      <Events events={events} />
    </div>
  )
}

function EndpointActs({ webhook, ask }: { readonly webhook: Webhook; readonly ask: Ask }) {
  const { id, isEnabled } = webhook
  const name = nameOf(webhook)
  return (
    <div class="actions">
      <ActButton
        needs="operator"
        look="small"
        icon="play"
        label={`Test ${name}`}
        onClick={() => ask({ deed: 'testWebhook', id, name })}
      >
        Test
      </ActButton>
      {isEnabled ? (
        <ActButton
          needs="operator"
          look="small"
          icon="pause"
          label={`Disable ${name}`}
          onClick={() => ask({ deed: 'disableWebhook', id, name })}
        >
          Disable
        </ActButton>
      ) : (
        <ActButton
          needs="operator"
          look="small"
          label={`Enable ${name}`}
          onClick={() => ask({ deed: 'enableWebhook', id, name })}
        >
          Enable
        </ActButton>
      )}
    </div>
  )
}
