/** `millrace start --preset webhooks`: the worker that delivers, the dashboard, and the retention of deliveries. */
import type { Preset } from '../../src/cli/extensions.ts'
import { logAlerter } from '../../src/observe/index.ts'
import { loadSettings } from './config.ts'
import { webhookRoutes } from './http/routes.ts'
import { webhookMetrics } from './metrics.ts'
import { openWebhooks, retentionDuty, WEBHOOKS_ENGINE } from './webhooks.ts'

export const preset: Preset = {
  takes: ['config'],

  async open({ engine, config, log, clock }) {
    const settings = loadSettings(config)
    const { metrics, instrument } = webhookMetrics()
    const webhooks = await openWebhooks({ engine, ...settings, metrics, log, clock })
    log.info('Webhooks', { engine: engine.split(':')[0], endpoints: (await webhooks.endpoints.list()).length })
    return {
      workers: [{ engine, jobs: webhooks.jobs }],
      alerter: logAlerter(log),
      instruments: [instrument],
      pages: { webhooks: webhookRoutes(webhooks) },
      duties: [retentionDuty(webhooks.retain, log)],
      examples: examplesFor(engine),
      close: () => webhooks.close(),
    }
  },
}

function examplesFor(engine: string): readonly (readonly [string, string])[] {
  // The log must not contain the password of a database.
  const at = engine === WEBHOOKS_ENGINE ? '' : engine.startsWith('sqlite:') ? ` --engine '${engine}'` : ' --engine …'
  return [
    [`millrace webhooks add https://example.com/hooks${at}`, 'a new endpoint, and its secret'],
    [`millrace webhooks test <id>${at}`, 'whether its receiver answers'],
    [`millrace webhooks deliveries${at}`, 'what was delivered'],
  ]
}
