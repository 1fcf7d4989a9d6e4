import type { BulkOutcome } from '../../desk/bulk.ts'
import type { Desk } from '../../desk/desk.ts'
import { type Letter, type LetterFilter, type Selection, toLetter } from '../../desk/selection.ts'
import { deadLettersOf } from '../../engine/admission.ts'
import { AUDIT_ACTIONS, type DeadLetterFilter } from '../../engine/dead-letters.ts'
import { OptionError, UnsupportedError } from '../../errors.ts'
import type { DEAD_LETTER_ROUTES } from '../contract/dead-letters.ts'
import { readAuditCursor, readLetterCursor, toCursor } from '../cursors.ts'
import type { OperationView } from '../operations.ts'
import type { Parts } from '../parts.ts'
import type { Call, Handlers } from '../routing.ts'
import { scan } from '../scan.ts'
import { refusePlaceholder } from './acts.ts'
import { given } from './shown.ts'
import { auditOf, detailOf, historyOf, summaryOf } from './views.ts'

/** Counting takes no longer than this, or the caller would wait; what was not reached makes the counts lower bounds. */
const COUNT_MS = 5_000

type LetterRoutes = Handlers<keyof typeof DEAD_LETTER_ROUTES>

export function deadLetterHandlers(parts: Parts): LetterRoutes {
  return { ...lookingAt(parts), ...actingOn(parts), ...following(parts) }
}

function deskOf({ desk, mill }: Parts): Desk {
  if (desk !== null) return desk
  throw new UnsupportedError({ engine: mill.engine.name, limit: 'keeps no dead letters' })
}

function lookingAt(
  parts: Parts,
): Pick<LetterRoutes, 'listDeadLetters' | 'groupDeadLetters' | 'showDeadLetter' | 'listAudit'> {
  const { redaction } = parts
  return {
    async listDeadLetters({ query }) {
      const { cursor, limit, fingerprint, ...filter } = given(query)
      const { items, next } = await scan<Letter, NonNullable<DeadLetterFilter['after']>>({
        clock: parts.clock,
        limit,
        from: cursor === undefined ? null : placeFrom(cursor),
        read: async (after, max) => {
          const page = await deadLettersOf(parts.mill.engine).list({ ...filter, limit: max, ...(after && { after }) })
          return page.map(toLetter)
        },
        placeOf: ({ job }) => ({ completedAtMs: job.completedAtMs ?? 0, id: job.id }),
        matches: fingerprint === undefined ? null : (letter) => letter.fingerprint === fingerprint,
      })
      return {
        items: items.map((letter) => ({ ...letter, job: summaryOf(letter.job, redaction) })),
        next: next === null ? null : toCursor([next.completedAtMs, next.id]),
      }
    },
    async groupDeadLetters({ query }, { signal }) {
      const { groups, seen, complete, selection } = await counting(parts, signal, (until) =>
        deskOf(parts).causes(given(query), { signal: until }),
      )
      return { groups, scanned: seen, complete, selection: shownSelection(selection) }
    },
    async showDeadLetter({ params: { id } }) {
      const { job, error, fingerprint, history, audit } = await deskOf(parts).show(id)
      return {
        job: detailOf(job, redaction),
        ...{ error, fingerprint, history: historyOf(history) },
        audit: audit.map((entry) => auditOf(entry, redaction)),
        checked: parts.jobs.has(job.type),
        redacted: redaction.payload(job.type, job.payload).redacted,
      }
    },
    async listAudit({ query }) {
      const { cursor, limit, action: named, ...filter } = given(query)
      const action = AUDIT_ACTIONS.find((one) => one === named)
      if (named !== undefined && action === undefined) {
        throw new OptionError(`'action' is '${named}'; give one of ${AUDIT_ACTIONS.join(', ')}`)
      }
      const before = cursor === undefined ? undefined : readAuditCursor(cursor)[0]
      const entries = await deskOf(parts).audit({ ...filter, ...given({ action, before }), limit: limit + 1 })
      const items = entries.slice(0, limit)
      const last = entries.length > limit ? items.at(-1) : undefined
      return {
        items: items.map((entry) => auditOf(entry, redaction)),
        next: last === undefined ? null : toCursor([last.seq]),
      }
    },
  }
}

function placeFrom(cursor: string): NonNullable<DeadLetterFilter['after']> {
  const [completedAtMs, id] = readLetterCursor(cursor)
  return { completedAtMs, id }
}

function actingOn(
  parts: Parts,
): Pick<
  LetterRoutes,
  'replayDeadLetter' | 'replayDeadLetters' | 'discardDeadLetters' | 'undoDiscard' | 'purgeDeadLetters'
> {
  return {
    async replayDeadLetter({ params: { id }, body }, { caller }) {
      const { reason, payload, force, dryRun } = body
      refusePlaceholder(payload)
      await deskOf(parts).replay(id, given({ who: caller.who, reason }), { payload, force, dryRun })
      return { id, replayed: !dryRun }
    },
    replayDeadLetters: ({ body }, call) => bulk(parts, call, 'replay', body),
    discardDeadLetters: ({ body }, call) => bulk(parts, call, 'discard', body),
    async undoDiscard({ params: { id }, body: { reason } }, { caller }) {
      await deskOf(parts).undo(id, given({ who: caller.who, reason }))
      return { id, undone: true }
    },
    purgeDeadLetters: ({ body }, call) => bulk(parts, call, 'purge', body),
  }
}

const ACTS = { replay: 'replayAll', discard: 'discard', purge: 'purge' } as const

interface BulkBody {
  readonly selection: { readonly ids: readonly string[] } | Readonly<Record<string, unknown>>
  readonly dryRun: boolean
  readonly force: boolean
  readonly rate?: number | undefined
  readonly reason?: string | undefined
}

async function bulk(
  parts: Parts,
  { caller, signal }: Call,
  kind: OperationView['kind'],
  body: BulkBody,
): Promise<{ outcome: ShownOutcome | null; operation: OperationView | null }> {
  const desk = deskOf(parts)
  const { dryRun, force, rate, reason } = body
  const selection: Selection = given(body.selection)
  const by = given({ who: caller.who, reason })
  const options = given({ force, rate })
  if (dryRun) {
    const outcome = await counting(parts, signal, (until) =>
      desk[ACTS[kind]](selection, by, { ...options, dryRun, signal: until }),
    )
    const shown = { ...outcome, refused: { ...outcome.refused }, selection: shownSelection(outcome.selection) }
    return { outcome: shown, operation: null }
  }
  const operation = parts.operations.start({
    kind,
    who: caller.who,
    reason: reason ?? kind,
    run: (following) => desk[ACTS[kind]](selection, by, { ...options, ...following }),
  })
  return { outcome: null, operation }
}

type ShownOutcome = Omit<BulkOutcome, 'refused' | 'selection'> & {
  readonly refused: Readonly<Record<string, number>>
  readonly selection: ShownSelection
}

type ShownSelection = LetterFilter | { readonly ids: string[] }

function shownSelection(selection: Selection): ShownSelection {
  return 'ids' in selection ? { ids: [...selection.ids] } : selection
}

/** Counts until it is done, the caller goes away, or the time is up. */
async function counting<Answer>(
  { clock }: Parts,
  signal: AbortSignal,
  count: (until: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const late = new AbortController()
  const cancel = clock.after(COUNT_MS, () => late.abort())
  try {
    return await count(AbortSignal.any([signal, late.signal]))
  } finally {
    cancel()
  }
}

function following({ operations }: Parts): Pick<LetterRoutes, 'listOperations' | 'showOperation' | 'stopOperation'> {
  return {
    listOperations: () => ({ operations: operations.list() }),
    showOperation: ({ params: { id } }) => operations.find(id),
    stopOperation: ({ params: { id } }) => operations.stop(id),
  }
}
