import type { BulkOutcome, Request, Routes } from '../../api/shapes.ts'
import { counted } from '../../parts/format.ts'
import type { Selected } from '../../parts/selection.ts'

export type Selection = Request<Routes['replayDeadLetters']>['body']['selection']

export interface LetterFilter {
  readonly type?: string | undefined
  readonly fingerprint?: string | undefined
  readonly search?: string | undefined
  /** Only letters that died before this time, as on the page. */
  readonly beforeMs?: number | undefined
}

/** The selection for the API. */
export function selectionOf({ ids, all }: Selected, { type, fingerprint, search, beforeMs }: LetterFilter): Selection {
  if (!all) return { ids: [...ids] }
  return {
    ...(type !== undefined && { type }),
    ...(fingerprint !== undefined && { fingerprint }),
    ...(search !== undefined && { search }),
    ...(beforeMs !== undefined && { beforeMs }),
  }
}

/** The selection as text. */
export function selectionText(selection: Selection): string {
  if ('ids' in selection) return counted(selection.ids.length, 'dead letter')
  const { type, fingerprint, search } = selection
  if (search !== undefined) return `all dead letters that ‘${search}’ finds`
  if (fingerprint !== undefined) return 'all dead letters of this cause'
  return type === undefined ? 'all dead letters' : `all dead letters of type ${type}`
}

/** What an action affects: a number once counted. */
export function touchedText(selection: Selection, outcome: Pick<BulkOutcome, 'done' | 'interrupted'> | null): string {
  if (outcome === null) return selectionText(selection)
  return `${outcome.interrupted ? 'at least ' : ''}${counted(outcome.done, 'dead letter')}`
}
