import type { BulkOutcome } from '../../desk/bulk.ts'
import type { Desk } from '../../desk/desk.ts'
import {
  bounded,
  type Letter,
  type LetterFilter,
  letterMatcher,
  type Selection,
  toLetter,
} from '../../desk/selection.ts'
import { AUDIT_ACTIONS, type DeadLetterFilter, type DeadLetters } from '../../engine/dead-letters.ts'
import { scan } from '../../engine/scan.ts'
import { MillraceError, OptionError, UnsupportedError } from '../../errors.ts'
import type { JobView } from '../../job/job.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { hasPlaceholder } from '../../job/redaction.ts'
import type { AdminContext } from '../context.ts'
import type { DEAD_LETTER_ROUTES } from '../contract/dead-letters.ts'
import { type KeptSecrets, keepSecrets, withoutSecrets } from '../kept-secrets.ts'
import type { OperationView } from '../operations.ts'
import { readAuditCursor, readLetterCursor, toCursor } from '../paging.ts'
import { refusePlaceholder } from '../placeholders.ts'
import type { Call, Handlers } from '../routing.ts'
import { auditOf, detailOf, historyOf, summaryOf } from './views.ts'

/** Counting stops after this, and the counts are lower bounds. */
const COUNT_MS = 5_000

type LetterRoutes = Handlers<keyof typeof DEAD_LETTER_ROUTES>

export function deadLetterHandlers(admin: AdminContext): LetterRoutes {
  return { ...readHandlers(admin), ...actionHandlers(admin), ...operationHandlers(admin) }
}

function deskOf({ desk, mill }: AdminContext): Desk {
  return desk ?? refuse(mill)
}

function lettersOf({ deadLetters, mill }: AdminContext): DeadLetters {
  return deadLetters ?? refuse(mill)
}

function refuse({ engine }: AdminContext['mill']): never {
  throw new UnsupportedError({ engine: engine.name, limit: 'keeps no dead letters' })
}

function readHandlers(
  admin: AdminContext,
): Pick<LetterRoutes, 'listDeadLetters' | 'groupDeadLetters' | 'showDeadLetter' | 'listAudit'> {
  const { redaction } = admin
  return {
    async listDeadLetters({ query }) {
      const { cursor, limit, ...given } = omitUndefined(query)
      const filter = bounded<LetterFilter>(given, admin.clock)
      const { fingerprint, search, ...bounds } = filter
      const { items, next, looked, reachedMs } = await scan<Letter, Place>({
        clock: admin.clock,
        limit,
        from: cursor === undefined ? null : placeFrom(cursor),
        step: async (after, max) => {
          const page = await lettersOf(admin).list({ ...bounds, limit: max, ...(after && { after }) })
          const last = page.at(-1)?.job
          const reachedMs = last?.completedAtMs ?? null
          const isEnd = last === undefined || page.length < max
          return { items: page.map(toLetter), looked: page.length, last: isEnd ? null : letterPlace(last), reachedMs }
        },
        placeOf: ({ job }) => letterPlace(job),
        matches: fingerprint === undefined && search === undefined ? null : letterMatcher(filter, redaction),
      })
      return {
        items: items.map((letter) => ({ ...letter, job: summaryOf(letter.job, redaction) })),
        next: next === null ? null : toCursor([next.completedAtMs, next.id]),
        searched: given.search === undefined ? null : { looked, reachedMs },
      }
    },
    async groupDeadLetters({ query }, { signal }) {
      const { type, search } = query
      const count = (stop?: AbortSignal) =>
        counting(admin, stop, (until) => deskOf(admin).causes(omitUndefined(query), { signal: until }))
      // A search may be anything, so it is counted for its reader alone.
      const { value, atMs } =
        search === undefined
          ? await admin.causes.read(type, count)
          : { value: await count(signal), atMs: admin.clock.nowMs() }
      const { groups, seen, complete, selection } = value
      return { groups, scanned: seen, complete, selection: shownSelection(selection), countedAtMs: atMs }
    },
    async showDeadLetter({ params: { id } }) {
      const { job, error, fingerprint, history, audit } = await deskOf(admin).show(id)
      return {
        job: detailOf(job, redaction),
        ...{ error, fingerprint, history: historyOf(history) },
        audit: audit.map((entry) => auditOf(entry, redaction)),
        checked: admin.jobs.has(job.type),
        redacted: redaction.payload(job.type, job.payload, job.options?.name ?? job.type).redacted,
      }
    },
    async listAudit({ query }) {
      const { cursor, limit, action: named, ...filter } = omitUndefined(query)
      const action = AUDIT_ACTIONS.find((one) => one === named)
      if (named !== undefined && action === undefined) {
        throw new OptionError(`'action' is '${named}'; give one of ${AUDIT_ACTIONS.join(', ')}`)
      }
      const before = cursor === undefined ? undefined : readAuditCursor(cursor)[0]
      const entries = await deskOf(admin).audit({ ...filter, ...omitUndefined({ action, before }), limit: limit + 1 })
      const items = entries.slice(0, limit)
      const last = entries.length > limit ? items.at(-1) : undefined
      return {
        items: items.map((entry) => auditOf(entry, redaction)),
        next: last === undefined ? null : toCursor([last.seq]),
      }
    },
  }
}

type Place = NonNullable<DeadLetterFilter['after']>

function letterPlace({ completedAtMs, id }: JobView): Place {
  return { completedAtMs: completedAtMs ?? 0, id }
}

function placeFrom(cursor: string): Place {
  const [completedAtMs, id] = readLetterCursor(cursor)
  return { completedAtMs, id }
}

function actionHandlers(
  admin: AdminContext,
): Pick<
  LetterRoutes,
  'replayDeadLetter' | 'replayDeadLetters' | 'discardDeadLetters' | 'undoDiscard' | 'purgeDeadLetters' | 'eraseJobs'
> {
  return {
    async replayDeadLetter({ params: { id }, body }, { caller }) {
      const { reason, force, dryRun } = body
      const { payload, secrets } = await withKeptSecrets(admin, id, body.payload)
      refusePlaceholder(payload)
      const by = omitUndefined({ who: caller.who, reason })
      await withoutSecrets(secrets, () => deskOf(admin).replay(id, by, { payload, force, dryRun }))
      admin.causes.forget()
      return { id, replayed: !dryRun }
    },
    replayDeadLetters: ({ body }, call) => bulk(admin, call, 'replay', body),
    discardDeadLetters: ({ body }, call) => bulk(admin, call, 'discard', body),
    async undoDiscard({ params: { id }, body: { reason } }, { caller }) {
      await deskOf(admin).undo(id, omitUndefined({ who: caller.who, reason }))
      admin.causes.forget()
      return { id, undone: true }
    },
    purgeDeadLetters: ({ body }, call) => bulk(admin, call, 'purge', body),
    eraseJobs: ({ body }, call) => bulk(admin, call, 'erase', body),
  }
}

/** Only from this letter, and each only where it was shown as a placeholder. */
async function withKeptSecrets(admin: AdminContext, id: string, payload: unknown): Promise<KeptSecrets> {
  if (!hasPlaceholder(payload)) return { payload, secrets: [] }
  const [letter] = await lettersOf(admin).list({ ids: [id] })
  if (letter !== undefined) return keepSecrets(admin.redaction, toLetter(letter).job, payload)
  throw new MillraceError('ERR_JOB_UNKNOWN', `Dead letter not found: ${id}; it was replayed or removed`)
}

const DESK_METHODS = { replay: 'replayAll', discard: 'discard', purge: 'purge', erase: 'erase' } as const

interface BulkBody {
  readonly selection: { readonly ids: readonly string[] } | Readonly<Record<string, unknown>>
  readonly dryRun: boolean
  readonly force: boolean
  readonly rate?: number | undefined
  readonly reason?: string | undefined
}

async function bulk(
  admin: AdminContext,
  { caller, signal }: Call,
  kind: keyof typeof DESK_METHODS,
  body: BulkBody,
): Promise<{ outcome: ShownOutcome | null; operation: OperationView | null }> {
  const desk = deskOf(admin)
  const { dryRun, force, rate, reason } = body
  const given: Selection = omitUndefined(body.selection)
  // What cannot be searched for is refused here, not by an operation that has begun.
  const selection = bounded(given, admin.clock)
  if (!('ids' in selection)) letterMatcher(selection, admin.redaction)
  const by = omitUndefined({ who: caller.who, reason })
  const options = omitUndefined({ force, rate })
  if (dryRun) {
    const outcome = await counting(admin, signal, (until) =>
      desk[DESK_METHODS[kind]](selection, by, { ...options, dryRun, signal: until }),
    )
    const shown = { ...outcome, refused: { ...outcome.refused }, selection: shownSelection(outcome.selection) }
    return { outcome: shown, operation: null }
  }
  const operation = admin.operations.start({
    kind,
    who: caller.who,
    reason: reason ?? kind,
    run: (progress) => desk[DESK_METHODS[kind]](selection, by, { ...options, ...progress }),
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

/** Counts until done, `signal` is aborted, or the time is up. */
async function counting<Answer>(
  { clock }: AdminContext,
  signal: AbortSignal | undefined,
  count: (until: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const late = new AbortController()
  const cancel = clock.after(COUNT_MS, () => late.abort())
  try {
    return await count(signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]))
  } finally {
    cancel()
  }
}

function operationHandlers({
  operations,
}: AdminContext): Pick<LetterRoutes, 'listOperations' | 'showOperation' | 'stopOperation'> {
  return {
    listOperations: () => ({ operations: operations.list() }),
    showOperation: ({ params: { id } }) => operations.find(id),
    stopOperation: ({ params: { id } }) => operations.stop(id),
  }
}
