/** The section of docs/benchmarks.md about the hook of the conversation pipeline, from `npm run bench:hook`. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineFacts } from '../result.ts'

export interface HookFigure {
  readonly what: string
  /** Of several runs the middle one. */
  readonly value: number
  /** Each run, where there were several. */
  readonly runs?: readonly number[]
  readonly unit: 'ms' | 'times' | 'hooks'
  readonly target?: number
  readonly isMet?: boolean
}

export interface HookResult {
  readonly date: string
  readonly rounds: number
  readonly machine: MachineFacts
  readonly figures: readonly HookFigure[]
}

export const HOOK_RESULTS = 'hook.json'

/** Null if it was never measured. */
export async function readHook(dir: string): Promise<HookResult | null> {
  try {
    return JSON.parse(await readFile(join(dir, HOOK_RESULTS), 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

const UNITS = { ms: ' ms', times: ' ×', hooks: '' } as const

export function renderHook({ rounds, figures }: HookResult): string {
  const rows = figures.map(({ what, value, runs = [value], unit, target, isMet }) => {
    const promised = target === undefined ? '–' : `${unit === 'hooks' ? '' : '≤ '}${target}${UNITS[unit]}`
    const verdict = isMet === undefined ? '' : isMet ? 'met' : 'missed'
    const spread = `${Math.min(...runs)} to ${Math.max(...runs)}`
    return `| ${what} | ${value}${UNITS[unit]} | ${spread} | ${promised} | ${verdict} |`
  })
  const count = Math.max(1, ...figures.map(({ runs = [] }) => runs.length))
  return [
    '## The hook of the conversation pipeline',
    '',
    `Whole processes of the packed package, from start to exit, ${rounds} times in turns with \`node -e 0\`; sanitising, writing and enqueueing in one process. The middle of ${count} runs, and their spread. Run it: \`npm run bench:hook\`.`,
    '',
    '|  | measured | runs | promised |  |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}
