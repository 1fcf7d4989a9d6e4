import type { z } from 'zod'
import type { Beat } from '../../engine/presence.ts'
import type { OPERATING_ROUTES } from '../contract/operating.ts'
import type { Parts } from '../parts.ts'
import type { Shown } from './shown.ts'

type Queues = Shown<z.output<(typeof OPERATING_ROUTES)['listQueues']['answer']>>['queues']

const EMPTY = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }

/** Every type that has jobs, is paused, is run by somebody or is defined here, by name. */
export async function queuesOf({ mill, sampler, jobs }: Parts): Promise<Queues> {
  const { pauses, presence } = mill.engine
  const [counts, paused, beats] = await Promise.all([sampler.counts(), pauses?.list() ?? [], presence?.list() ?? null])
  const types = new Set([
    ...Object.keys(counts),
    ...paused.map(({ type }) => type),
    ...(beats ?? []).map(({ type }) => type),
    ...jobs.keys(),
  ])
  return [...types].sort().map((type) => ({
    type,
    ...(counts[type] ?? EMPTY),
    pause: paused.find((pause) => pause.type === type) ?? null,
    workers: beats === null ? null : runningOf(beats, type),
    defined: jobs.has(type),
  }))
}

function runningOf(beats: readonly Beat[], type: string): number {
  return beats.filter((beat) => beat.type === type && beat.status === 'RUNNING').length
}
