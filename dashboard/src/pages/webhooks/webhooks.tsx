import type { Webhook } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { PageFrame } from '../../parts/page.tsx'
import { Answered, EmptyState } from '../../parts/states.tsx'
import { useAsked } from '../../parts/use-asked.ts'
import type { Route } from '../../router/route.ts'
import { type Asked, Deeds } from './deeds.tsx'
import { Recent } from './deliveries.tsx'
import { Endpoints, nameOf } from './endpoints.tsx'

const RECENT = 50

export function WebhooksPage({ query }: { readonly query: Route['query'] }) {
  const chosen = query.webhook
  const webhooks = useAnswer('listWebhooks', {})
  const filter = { limit: RECENT, ...(chosen !== undefined && { webhookId: chosen }) }
  const deliveries = useAnswer('listWebhookDeliveries', { query: filter })
  const reload = async (): Promise<void> => void (await Promise.all([webhooks.reload(), deliveries.reload()]))
  const { asked, ask, ends } = useAsked<Asked>(reload)
  useFresh(reload, { on: ['overview'], atMostEveryMs: 5_000, everyMs: 10_000 })
  return (
    <PageFrame title="Webhooks" lead="Endpoints that get events, and what was delivered to them.">
      <Answered of={webhooks}>
        {({ webhooks: all }) => (all.length === 0 ? <NoWebhooks /> : <Endpoints all={all} chosen={chosen} ask={ask} />)}
      </Answered>
      <Answered of={deliveries}>
        {({ deliveries: recent }) => (
          <Recent deliveries={recent} names={namesOf(webhooks.value?.webhooks ?? [])} ask={ask} />
        )}
      </Answered>
      {asked !== null && <Deeds {...asked} {...ends} />}
    </PageFrame>
  )
}

function namesOf(webhooks: readonly Webhook[]): ReadonlyMap<string, string> {
  return new Map(webhooks.map((one) => [one.id, nameOf(one)]))
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
