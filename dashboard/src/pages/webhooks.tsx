import { useState } from 'preact/hooks'
import { useApi } from '../api/context.ts'
import type { Webhook, WebhookDelivery } from '../api/shapes.ts'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { ActDialog } from '../parts/act-dialog.tsx'
import { Badge } from '../parts/badge.tsx'
import { ActButton } from '../parts/fields.tsx'
import { duration, whole } from '../parts/format.ts'
import { JobId } from '../parts/id.tsx'
import { Card, PageFrame } from '../parts/page.tsx'
import { Answered, EmptyState } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Ago, MaybeAgo } from '../parts/time.tsx'
import { useToast } from '../parts/toast.tsx'
import { type Route, routeTo } from '../router/route.ts'

type Deed = 'enableWebhook' | 'disableWebhook' | 'testWebhook' | 'redeliverWebhook'

interface Asked {
  readonly deed: Deed
  /** Of an endpoint, or of a delivery. */
  readonly id: string
  readonly name: string
}

type Ask = (asked: Asked) => void

const RECENT = 50

export function WebhooksPage({ query }: { readonly query: Route['query'] }) {
  const chosen = query.webhook
  const webhooks = useAnswer('listWebhooks', {})
  const filter = { limit: RECENT, ...(chosen !== undefined && { webhookId: chosen }) }
  const deliveries = useAnswer('listWebhookDeliveries', { query: filter })
  const [asked, setAsked] = useState<Asked | null>(null)
  const reload = async (): Promise<void> => void (await Promise.all([webhooks.reload(), deliveries.reload()]))
  useFresh(reload, { on: ['overview'], atMostEveryMs: 5_000, everyMs: 10_000 })
  return (
    <PageFrame title="Webhooks" lead="Endpoints that get events, and what was delivered to them.">
      <Answered of={webhooks}>
        {({ webhooks: all }) =>
          all.length === 0 ? <NoWebhooks /> : <Endpoints all={all} chosen={chosen} ask={setAsked} />
        }
      </Answered>
      <Answered of={deliveries}>
        {({ deliveries: recent }) => (
          <Recent deliveries={recent} names={namesOf(webhooks.value?.webhooks ?? [])} ask={setAsked} />
        )}
      </Answered>
      {asked !== null && (
        <Deeds
          {...asked}
          onClose={() => setAsked(null)}
          onDone={() => {
            setAsked(null)
            void reload()
          }}
        />
      )}
    </PageFrame>
  )
}

function namesOf(webhooks: readonly Webhook[]): ReadonlyMap<string, string> {
  return new Map(webhooks.map((one) => [one.id, nameOf(one)]))
}

function nameOf({ description, origin }: Webhook): string {
  return description ?? origin.replace(/^https:\/\//, '')
}

function NoWebhooks() {
  return (
    <EmptyState icon="webhooks" title="No webhooks">
      <p>
        Add an endpoint, and events are sent to it: <code>millrace webhooks add https://example.com/hooks</code>
      </p>
    </EmptyState>
  )
}

interface EndpointsProps {
  readonly all: readonly Webhook[]
  readonly chosen: string | undefined
  readonly ask: Ask
}

function Endpoints({ all, chosen, ask }: EndpointsProps) {
  const columns: readonly Column<Webhook>[] = [
    { key: 'state', title: 'State', cell: (one) => <State webhook={one} /> },
    { key: 'name', title: 'Endpoint', cell: (one) => <Named webhook={one} isChosen={one.id === chosen} /> },
    { key: 'delivered', title: 'Delivered', align: 'end', cell: (one) => <Figure value={one.successCount} /> },
    { key: 'failed', title: 'Failed', align: 'end', cell: (one) => <Figure value={one.failureCount} /> },
    { key: 'latency', title: 'Latency', align: 'end', cell: ({ avgLatencyMs }) => duration(avgLatencyMs) },
    {
      key: 'last',
      title: 'Last delivered',
      cell: (one) => <MaybeAgo atMs={one.lastDeliveredAtMs} otherwise="never" />,
    },
    { key: 'act', title: 'Actions', cell: (one) => <EndpointActs webhook={one} ask={ask} /> },
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
  return (
    <span title={disabledReason ?? ''}>
      <Badge
        text={disabledReason === 'max_failures_exceeded' ? 'Failed too often' : 'Disabled'}
        tone="bad"
        icon="pause"
      />
    </span>
  )
}

function Named({ webhook, isChosen }: { readonly webhook: Webhook; readonly isChosen: boolean }) {
  const { id, origin, tenant, events } = webhook
  const href = routeTo('webhooks', null, isChosen ? {} : { webhook: id })
  return (
    <div class="endpoint">
      <a href={href} title={isChosen ? 'Show the deliveries of all endpoints' : 'Show its deliveries only'}>
        {nameOf(webhook)}
      </a>
      {isChosen && ' (shown below)'}
      <div class="quiet">{[origin, tenant].filter((part) => part !== null).join(' · ')}</div>
      <div class="quiet">{events.join(', ')}</div>
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

interface RecentProps {
  readonly deliveries: readonly WebhookDelivery[]
  readonly names: ReadonlyMap<string, string>
  readonly ask: Ask
}

function Recent({ deliveries, names, ask }: RecentProps) {
  const columns: readonly Column<WebhookDelivery>[] = [
    { key: 'status', title: 'Status', cell: (one) => <Outcome delivery={one} /> },
    { key: 'event', title: 'Event', cell: ({ event }) => event ?? '–' },
    {
      key: 'webhook',
      title: 'Endpoint',
      cell: ({ webhookId }) => <div class="endpoint">{names.get(webhookId) ?? 'removed'}</div>,
    },
    { key: 'job', title: 'Job', cell: ({ jobId }) => <JobId id={jobId} /> },
    { key: 'code', title: 'Code', align: 'end', cell: ({ statusCode }) => statusCode ?? '–' },
    { key: 'latency', title: 'Latency', align: 'end', cell: ({ latencyMs }) => duration(latencyMs) },
    { key: 'attempt', title: 'Attempt', align: 'end', cell: ({ attempt }) => whole(attempt) },
    { key: 'at', title: 'When', cell: ({ atMs }) => <Ago atMs={atMs} /> },
    { key: 'act', title: 'Actions', cell: (one) => <Again delivery={one} ask={ask} /> },
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

function Outcome({ delivery: { status, isFinal, errorMessage } }: { readonly delivery: WebhookDelivery }) {
  if (status === 'success') return <Badge text="Delivered" tone="good" icon="check" />
  return (
    <span title={errorMessage ?? ''}>
      <Badge
        text={isFinal ? 'Failed' : 'Will retry'}
        tone={isFinal ? 'bad' : 'warn'}
        icon={isFinal ? 'cross' : 'again'}
      />
    </span>
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

const WORDS: Readonly<Record<Deed, { readonly verb: string; readonly text: string; readonly done: string }>> = {
  enableWebhook: {
    verb: 'Enable',
    text: 'It gets events again. Its failures so far no longer count.',
    done: 'Enabled',
  },
  disableWebhook: {
    verb: 'Disable',
    text: 'It gets no events. Deliveries that were tried become dead letters.',
    done: 'Disabled',
  },
  testWebhook: { verb: 'Send test', text: 'Sends a signed webhook.test event now.', done: 'Test sent' },
  redeliverWebhook: { verb: 'Redeliver', text: 'Sends it again with the same delivery id.', done: 'Enqueued again' },
}

interface DeedsProps extends Asked {
  readonly onClose: () => void
  readonly onDone: () => void
}

function Deeds({ deed, id, name, onClose, onDone }: DeedsProps) {
  const api = useApi()
  const toast = useToast()
  const { verb, text, done } = WORDS[deed]
  return (
    <ActDialog<unknown>
      title={`${verb}: ${name}?`}
      verb={verb}
      act={(reason) => api.call(deed, { params: { id }, body: { ...(reason !== undefined && { reason }) } })}
      onDone={(answer) => {
        toast({ text: `${deed === 'testWebhook' ? testText(answer) : done}: ${name}` })
        onDone()
      }}
      onClose={onClose}
    >
      <p>{text}</p>
    </ActDialog>
  )
}

function testText(answer: unknown): string {
  const { success, statusCode, latencyMs, error } = Object(answer)
  return success === true ? `Status ${statusCode} after ${duration(latencyMs)}` : `Test failed (${error})`
}
