import type { z } from 'zod'
import { listMarks } from '../../engine/history/marks.ts'
import { OptionError } from '../../errors.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { readPast } from '../../observe/history/history.ts'
import { RANGES, type RangeName } from '../../observe/history/ranges.ts'
import type { AdminContext } from '../context.ts'
import type { OPERATING_ROUTES } from '../contract/operating.ts'
import type { DeepReadonly } from '../contract/route.ts'

type Answer = DeepReadonly<z.output<(typeof OPERATING_ROUTES)['showHistory']['answer']>>
type Annotation = Answer['annotations'][number]

interface Asked {
  readonly range?: RangeName | undefined
  readonly type?: string | undefined
  readonly sinceMs?: number | undefined
}

const ANNOTATIONS_MAX = 200
const PAUSES_MAX = 200

/** Of the store where a range is asked for, otherwise the samples of this process. */
export async function historyOf(admin: AdminContext, { range, type, sinceMs }: Asked): Promise<Answer> {
  const { sampler, clock } = admin
  const { records } = sampler.engine
  const isKept = records !== undefined
  const none = { kept: isKept, types: [], hasOthers: false, annotations: [], annotationsLeft: 0 }
  if (range === undefined) {
    if (type !== undefined) throw new OptionError(`'type' needs a range; give one, such as range=1h`)
    return { ...none, stepMs: sampler.stepMs, points: sampler.points(sinceMs) }
  }
  if (sinceMs !== undefined) throw new OptionError(`give either 'range' or 'sinceMs'`)
  const nowMs = clock.nowMs()
  const annotations = await annotationsOf(admin, nowMs - RANGES[range].ms, type)
  if (!isKept) {
    const points = range === '15m' && type === undefined ? sampler.points() : []
    return { ...none, ...annotations, stepMs: sampler.stepMs, points }
  }
  const { stepMs, points, types, hasOthers } = await readPast(records, { range, nowMs, ...omitUndefined({ type }) })
  return { ...none, ...annotations, stepMs, points, types, hasOthers }
}

/** Pauses are in the audit, and the rest in the history. A store that does not tell leaves them out. */
async function annotationsOf(
  admin: AdminContext,
  sinceMs: number,
  type: string | undefined,
): Promise<Pick<Answer, 'annotations' | 'annotationsLeft'>> {
  const { records } = admin.sampler.engine
  const [{ marks, left }, ...pauses] = await Promise.all([
    records === undefined ? { marks: [], left: 0 } : listMarks(records, sinceMs),
    pausesSince(admin, 'pause', sinceMs),
    pausesSince(admin, 'resume', sinceMs),
  ])
  const seen = marks.map(({ atMs, kind, text, type: of }): Annotation => ({ atMs, kind, text, type: of }))
  const all = [...seen, ...pauses.flat()]
    .filter((one) => type === undefined || one.type === null || one.type === type)
    .sort((one, other) => one.atMs - other.atMs)
  const annotations = all.slice(-ANNOTATIONS_MAX)
  return { annotations, annotationsLeft: left + all.length - annotations.length }
}

async function pausesSince(
  { deadLetters }: AdminContext,
  action: 'pause' | 'resume',
  sinceMs: number,
): Promise<readonly Annotation[]> {
  const entries = (await deadLetters?.audit({ action, limit: PAUSES_MAX })) ?? []
  const done = action === 'pause' ? 'paused' : 'resumed'
  return entries
    .filter(({ atMs }) => atMs >= sinceMs)
    .map(({ atMs, who, type }) => ({ atMs, kind: action, type, text: `${who} ${done} ${type}` }))
}
