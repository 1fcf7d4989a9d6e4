import type { BulkOutcome, Request, Routes } from '../../api/shapes.ts'
import { counted } from '../../parts/format.ts'
import type { Selected } from '../../parts/selection.ts'

export type Selection = Request<Routes['replayDeadLetters']>['body']['selection']

export interface LetterFilter {
  readonly type?: string | undefined
  readonly fingerprint?: string | undefined
  /** Only what died before this time: what the page shows, without what dies later. */
  readonly beforeMs?: number | undefined
}

/** What the API is asked to act on. */
export function selectionOf({ ids, all }: Selected, { type, fingerprint, beforeMs }: LetterFilter): Selection {
  if (!all) return { ids: [...ids] }
  return {
    ...(type !== undefined && { type }),
    ...(fingerprint !== undefined && { fingerprint }),
    ...(beforeMs !== undefined && { beforeMs }),
  }
}

/** The same for a person. */
export function selectionText(selection: Selection): string {
  if ('ids' in selection) return counted(selection.ids.length, 'dead letter')
  const { type, fingerprint } = selection
  if (fingerprint !== undefined) return 'all dead letters of this cause'
  return type === undefined ? 'all dead letters' : `all dead letters of type ${type}`
}

/** What an act will touch: a number as soon as it was counted. */
export function touchedText(selection: Selection, outcome: Pick<BulkOutcome, 'done' | 'interrupted'> | null): string {
  if (outcome === null) return selectionText(selection)
  return `${outcome.interrupted ? 'at least ' : ''}${counted(outcome.done, 'dead letter')}`
}
