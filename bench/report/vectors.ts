/** The section of docs/benchmarks.md about vectors, from `npm run bench:vectors`. */
import type { MachineFacts } from '../result.ts'
import { aboutRuns, FIGURE_COLUMNS, renderFigure, type WorkloadFigure } from './workload-figures.ts'

export interface VectorFigure extends WorkloadFigure {
  readonly unit: 'ms' | 'share' | '/s'
}

export interface VectorResult {
  readonly date: string
  readonly times: readonly string[]
  readonly vectors: number
  readonly dimensions: number
  readonly searches: number
  readonly machine: MachineFacts
  readonly figures: readonly VectorFigure[]
}

export const VECTOR_RESULTS = 'vectors.json'

const UNITS = { ms: ' ms', share: '', '/s': '/s' } as const

export function renderVectors({ vectors, dimensions, searches, times, figures }: VectorResult): string {
  return [
    '## Vectors',
    '',
    `The ten nearest neighbours among ${vectors} vectors of ${dimensions} dimensions in a thousand clusters, ${searches} searches one after another in each run, through the vector store. Recall is the share of the true ten that the index finds. The embedder of the last figures takes 100 ms for a batch of 32; its share is the time in which it was busy while two jobs of a thousand texts ran. ${aboutRuns(times)} Run it: \`npm run bench:vectors\`.`,
    '',
    ...FIGURE_COLUMNS,
    ...figures.map((figure) => renderFigure(figure, figure.unit === 'share' ? '≥ ' : '≤ ', UNITS[figure.unit])),
  ].join('\n')
}
