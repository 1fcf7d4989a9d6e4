import type { WebhookDelivery } from '../../api/shapes.ts'
import { Badge } from '../../parts/badge.tsx'
import { ActButton } from '../../parts/fields.tsx'
import { duration, whole } from '../../parts/format.ts'
import { JobId } from '../../parts/id.tsx'
import { Card } from '../../parts/page.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Ago } from '../../parts/time.tsx'
import type { Ask } from './deeds.tsx'

interface RecentProps {
  readonly deliveries: readonly WebhookDelivery[]
  readonly names: ReadonlyMap<string, string>
  readonly ask: Ask
}

export function Recent({ deliveries, names, ask }: RecentProps) {
  const columns: readonly Column<WebhookDelivery>[] = [
    { key: 'status', title: 'Status', narrow: 'line', cell: (one) => <Outcome delivery={one} /> },
    {
      key: 'event',
      title: 'Event',
      wide: true,
      narrow: 'lead',
      cell: ({ event, webhookId }) => (
        <div class="endpoint">
          {event ?? '–'}
          <div class="quiet">
            to <bdi>{names.get(webhookId) ?? 'an endpoint that was removed'}</bdi>
          </div>
        </div>
      ),
    },
    {
      key: 'job',
      title: 'Job',
      narrow: 'plain',
      cell: ({ jobId, attempt }) => (
        <div>
          <JobId id={jobId} />
          <div class="quiet">attempt {whole(attempt)}</div>
        </div>
      ),
    },
    { key: 'latency', title: 'Latency', align: 'end', cell: ({ latencyMs }) => duration(latencyMs) },
    { key: 'at', title: 'When', narrow: 'corner', cell: ({ atMs }) => <Ago atMs={atMs} /> },
    { key: 'act', title: 'Actions', narrow: 'plain', cell: (one) => <Again delivery={one} ask={ask} /> },
  ]
  return (
    <Card title="Recent deliveries" look="flush">
      {deliveries.length === 0 ? (
        <p class="quiet nothing">Nothing was delivered yet.</p>
      ) : (
        <Table
          caption="Recent deliveries"
          columns={columns}
          rows={deliveries}
          keyOf={({ jobId, attempt, atMs }) => `${jobId} ${attempt} ${atMs}`}
        />
      )}
    </Card>
  )
}

function Outcome({ delivery }: { readonly delivery: WebhookDelivery }) {
  const { status, statusCode, isFinal, errorMessage } = delivery
  if (status === 'success') {
    return (
      <div>
        <Badge text="Delivered" tone="good" icon="check" /> <span class="quiet figures">{statusCode}</span>
      </div>
    )
  }
  return (
    <div class="endpoint">
      <Badge
        text={isFinal ? 'Failed' : 'Will retry'}
        tone={isFinal ? 'bad' : 'warn'}
        icon={isFinal ? 'cross' : 'again'}
      />
      {errorMessage !== null && <div class="text-bad">{errorMessage}</div>}
    </div>
  )
}

function Again({ delivery: { deliveryId, event }, ask }: { readonly delivery: WebhookDelivery; readonly ask: Ask }) {
  const name = event ?? deliveryId
  return (
    <ActButton
      needs="operator"
      look="small"
      icon="again"
      label={`Redeliver ${name} ${deliveryId}`}
      onClick={() => ask({ deed: 'redeliverWebhook', id: deliveryId, name })}
    >
      Redeliver
    </ActButton>
  )
}
