import { typeOf } from './keys.ts'
import type { Place, Row } from './rows.ts'
import { toFields } from './rows.ts'

const PLACES: readonly Place[] = [
  'wait',
  'paused',
  'prioritized',
  'delayed',
  'waiting-children',
  'active',
  'completed',
  'failed',
  'ended',
]

export function toPlace(word: unknown): Place {
  return PLACES.find((place) => place === word) ?? 'unknown'
}

/** What a script answered for one job; null for one that is not there. */
export function toRow(answer: unknown): Row | null {
  const [queue, bullId, place, runsOut, flat] = listOf(answer)
  if (typeof queue !== 'string' || typeof bullId !== 'string') return null
  return {
    queue,
    type: typeOf(queue),
    bullId,
    place: toPlace(place),
    fields: toFields(flat),
    lockUntilMs: runsOut === '' || runsOut === undefined ? null : Number(runsOut),
  }
}

export function toRows(answer: unknown): readonly Row[] {
  return listOf(answer).flatMap((each) => toRow(each) ?? [])
}

export function listOf(answer: unknown): readonly unknown[] {
  return Array.isArray(answer) ? answer : []
}
