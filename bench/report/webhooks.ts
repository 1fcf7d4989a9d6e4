/** The section of docs/benchmarks.md about webhooks, from `npm run bench:webhooks`. */
import type { MachineFacts } from '../result.ts'
import { aboutRuns, FIGURE_COLUMNS, renderFigure, type WorkloadFigure } from './workload-figures.ts'

export interface WebhookFigure extends WorkloadFigure {
  readonly unit: '/s' | 'ms'
}

export interface WebhookResult {
  readonly date: string
  readonly times: readonly string[]
  readonly deliveries: number
  readonly machine: MachineFacts
  readonly figures: readonly WebhookFigure[]
}

export const WEBHOOK_RESULTS = 'webhooks.json'

const UNITS = { '/s': '/s', ms: ' ms' } as const

export function renderWebhooks({ deliveries, times, figures }: WebhookResult): string {
  return [
    '## Webhooks',
    '',
    `One worker process delivers ${deliveries} webhooks to a receiver on the same machine, 20 at once and without a rate limit: it claims, signs, sends, records and settles each. The receiver, a process of its own, counts them; a lost or repeated one fails the run. Durable commits. ${aboutRuns(times)} Run it: \`npm run bench:webhooks\`.`,
    '',
    ...FIGURE_COLUMNS,
    ...figures.map((figure) => renderFigure(figure, '≥ ', UNITS[figure.unit])),
  ].join('\n')
}
