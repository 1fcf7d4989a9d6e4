/** `millrace webhooks add`, `list`, `show`, `test`, `enable`, `disable` and `rotate`. */
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { MillraceError, OptionError } from '../../../src/errors.ts'
import { omitUndefined } from '../../../src/job/known-options.ts'
import { formatDuration } from '../../../src/time/duration.ts'
import type { WebhookEndpoint } from '../store/endpoint.ts'
import type { EndpointWithSecret } from '../store/endpoints.ts'
import { printAttempts } from './deliveries.ts'
import { textsOf, using } from './open.ts'

export async function addEndpoint(call: CommandCall): Promise<void> {
  const [url = ''] = call.arguments
  const { maxFailures, description } = call.options
  const endpoint = omitUndefined({
    ...{ url, events: textsOf(call.options.events), tenant: tenantOf(call) },
    maxFailures: typeof maxFailures === 'number' ? maxFailures : undefined,
    description: typeof description === 'string' ? description : undefined,
  })
  const added = await using(call, ({ endpoints }) => endpoints.add(endpoint), { mustExist: false })
  printSecret(call, added)
}

function tenantOf({ options: { org, workspace } }: CommandCall) {
  if (typeof org === 'string') return { orgId: org, ...(typeof workspace === 'string' && { workspaceId: workspace }) }
  if (workspace !== undefined) throw new OptionError(`'--workspace' needs '--org'; give both`)
  return undefined
}

export async function rotateSecret(call: CommandCall): Promise<void> {
  const [id = ''] = call.arguments
  // The command has parsed the duration.
  const keep = Number(call.options.keep)
  printSecret(call, await using(call, ({ endpoints }) => endpoints.rotate(id, { keep })))
}

function printSecret(call: CommandCall, { secret, ...endpoint }: EndpointWithSecret): void {
  if (call.json) {
    call.terminal.print(JSON.stringify({ ...endpoint, secret }))
    return
  }
  const { id, url, events, previousSecretUntil } = endpoint
  call.facts([
    ['id', id],
    ['url', url],
    ['events', events.join(' ')],
    ['secret', secret],
    ...(previousSecretUntil === null ? [] : [['old secret until', previousSecretUntil.toISOString()] as const]),
  ])
  call.terminal.print('Give the secret to the receiver now: it is not shown again.')
}

export async function listEndpoints(call: CommandCall): Promise<void> {
  const endpoints = await using(call, (webhooks) => webhooks.endpoints.list())
  if (call.json) for (const endpoint of endpoints) call.terminal.print(JSON.stringify(endpoint))
  else if (endpoints.length === 0) call.terminal.print('No webhooks; add one with millrace webhooks add <url>.')
  else {
    call.table(
      [
        ...[{ title: 'ID' }, { title: 'STATE' }, { title: 'EVENTS' }, { title: 'DELIVERED', align: 'right' } as const],
        ...([{ title: 'FAILED', align: 'right' }, { title: 'MEAN MS', align: 'right' }, { title: 'URL' }] as const),
      ],
      endpoints.map((one) => [
        ...[one.id, one.isEnabled ? 'enabled' : 'disabled', one.events.join(' '), String(one.successCount)],
        ...[String(one.failureCount), one.avgLatencyMs.toFixed(0), one.url],
      ]),
    )
  }
}

export async function showEndpoint(call: CommandCall): Promise<void> {
  const [id = ''] = call.arguments
  const { endpoint, deliveries } = await using(call, async (webhooks) => ({
    endpoint: await webhooks.endpoints.show(id),
    deliveries: await webhooks.deliveries({ webhookId: id, limit: 10 }),
  }))
  if (call.json) return call.terminal.print(JSON.stringify({ ...endpoint, deliveries }))
  call.facts(factsOf(endpoint))
  if (deliveries.length === 0) return
  call.terminal.print('')
  printAttempts(call, deliveries)
}

function factsOf(endpoint: WebhookEndpoint): readonly (readonly [string, string])[] {
  const { tenant, isEnabled, disabledReason, disabledAt } = endpoint
  const state = isEnabled ? 'enabled' : `disabled since ${disabledAt?.toISOString() ?? '?'}: ${disabledReason ?? '?'}`
  return [
    ['id', endpoint.id],
    ['url', endpoint.url],
    ['state', state],
    ['events', endpoint.events.join(' ')],
    ['tenant', tenant === null ? '-' : [tenant.orgId, tenant.workspaceId ?? []].flat().join('/')],
    ['description', endpoint.description ?? '-'],
    ['max failures', `${endpoint.maxFailures} in 24h`],
    ['delivered', String(endpoint.successCount)],
    ['failed attempts', String(endpoint.failureCount)],
    ['mean latency', `${endpoint.avgLatencyMs.toFixed(1)} ms`],
    ['last delivered', endpoint.lastDeliveredAt?.toISOString() ?? '-'],
    ['old secret until', endpoint.previousSecretUntil?.toISOString() ?? '-'],
    ['created', endpoint.createdAt.toISOString()],
  ]
}

export async function testEndpoint(call: CommandCall): Promise<void> {
  const [id = ''] = call.arguments
  const { success, statusCode, latencyMs, error } = await using(call, (webhooks) => webhooks.test(id))
  if (call.json) call.terminal.print(JSON.stringify({ id, success, statusCode, latencyMs, error }))
  else if (success) call.terminal.print(`Delivered: status ${statusCode} after ${formatDuration(latencyMs)}.`)
  if (!success) {
    throw new MillraceError(
      'ERR_UNHEALTHY',
      `the test event was not delivered: ${error ?? 'unknown'} (${latencyMs} ms)`,
    )
  }
}

export async function enableEndpoint(call: CommandCall): Promise<void> {
  const [id = ''] = call.arguments
  const endpoint = await using(call, ({ endpoints }) => endpoints.enable(id))
  call.terminal.print(call.json ? JSON.stringify(endpoint) : `Enabled ${endpoint.id}.`)
}

export async function disableEndpoint(call: CommandCall): Promise<void> {
  const [id = ''] = call.arguments
  const endpoint = await using(call, ({ endpoints }) => endpoints.disable(id, String(call.options.reason)))
  call.terminal.print(call.json ? JSON.stringify(endpoint) : `Disabled ${endpoint.id}.`)
}
