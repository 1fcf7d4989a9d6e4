/** The section of docs/benchmarks.md about the hook of the conversation pipeline, from `npm run bench:hook`. */
import type { MachineFacts } from '../result.ts'
import { FIGURE_COLUMNS, renderFigure, type WorkloadFigure } from './workload-figures.ts'

export interface HookFigure extends WorkloadFigure {
  readonly unit: 'ms' | 'times' | 'hooks'
}

export interface HookResult {
  readonly date: string
  readonly rounds: number
  readonly machine: MachineFacts
  readonly figures: readonly HookFigure[]
}

export const HOOK_RESULTS = 'hook.json'

const UNITS = { ms: ' ms', times: ' ×', hooks: '' } as const

export function renderHook({ rounds, figures }: HookResult): string {
  const rows = figures.map((figure) => renderFigure(figure, figure.unit === 'hooks' ? '' : '≤ ', UNITS[figure.unit]))
  const count = Math.max(1, ...figures.map(({ runs = [] }) => runs.length))
  return [
    '## The hook of the conversation pipeline',
    '',
    `Whole processes of the packed package, from start to exit, ${rounds} times in turns with \`node -e 0\`; sanitising, writing and enqueueing in one process. The middle of ${count} runs, one after another, and their spread. Run it: \`npm run bench:hook\`.`,
    '',
    ...FIGURE_COLUMNS,
    ...rows,
  ].join('\n')
}
