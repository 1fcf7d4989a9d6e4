/** A schedule while it is typed: every field as text, so that nothing typed is lost, however wrong it is. */
import type { Problem } from '../../api/client.ts'
import type { Request, Routes, ShownSchedule } from '../../api/shapes.ts'
import { readJson } from '../../parts/json-text.ts'

export interface Draft {
  readonly name: string
  readonly type: string
  readonly cron: string
  readonly tz: string
  /** JSON. */
  readonly payload: string
  /** As a field for date and time has it, in the zone of the browser; empty for none. */
  readonly start: string
  readonly end: string
  readonly limit: string
  readonly missed: string
  readonly overlap: string
}

const NEW: Draft = {
  name: '',
  type: '',
  cron: '0 3 * * *',
  tz: 'UTC',
  payload: '{}',
  start: '',
  end: '',
  limit: '',
  missed: 'one',
  overlap: 'skip',
}

export function draftOf(schedule: ShownSchedule | null): Draft {
  if (schedule === null) return NEW
  const { name, type, cron, tz, payload, startMs, endMs, limit, missed, overlap } = schedule
  return {
    ...{ name, type, cron, tz, missed, overlap },
    payload: JSON.stringify(payload, null, 2) ?? 'null',
    start: localText(startMs),
    end: localText(endMs),
    limit: limit === null ? '' : String(limit),
  }
}

export function localText(ms: number | null): string {
  if (ms === null) return ''
  const aheadMs = -new Date(ms).getTimezoneOffset() * 60_000
  return new Date(ms + aheadMs).toISOString().slice(0, 19)
}

/** Null for an empty field. A text without a zone is in that of the browser. */
export function msOf(text: string): number | null {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}

type Added = NonNullable<Request<Routes['addSchedule']>['body']>

/** What the draft says, as the API takes it. The server says what is wrong with it. */
export function bodyOf({ name, type, cron, tz, payload, start, end, limit, missed, overlap }: Draft): Added {
  const json = readJson(payload)
  return {
    ...{ name: name.trim(), type: type.trim(), cron, tz: tz.trim() },
    payload: json.ok ? json.value : null,
    startMs: msOf(start),
    endMs: msOf(end),
    limit: limit.trim() === '' ? null : Number(limit),
    // Both come from lists of exactly these values.
    missed: missed as NonNullable<Added['missed']>,
    overlap: overlap as NonNullable<Added['overlap']>,
  }
}

const SENT = {
  cron: 'cron',
  tz: 'tz',
  payload: 'payload',
  start: 'startMs',
  end: 'endMs',
  limit: 'limit',
  missed: 'missed',
  overlap: 'overlap',
} as const

/** Only what was edited: what somebody else has changed meanwhile stays. */
export function changesOf(before: Draft, after: Draft): NonNullable<Request<Routes['changeSchedule']>['body']> {
  const body = bodyOf(after)
  const edited = Object.entries(SENT).filter(([field]) => textOf(before, field) !== textOf(after, field))
  return Object.fromEntries(edited.map(([, sent]) => [sent, body[sent]]))
}

function textOf(draft: Draft, field: string): string {
  return new Map(Object.entries(draft)).get(field) ?? ''
}

/** What the preview is asked about. A number or date that the server would refuse is left to the form. */
export function timesOf({ cron, tz, start, end, limit }: Draft, name: string | undefined) {
  const [startMs, endMs, most] = [msOf(start), msOf(end), Number(limit)]
  return {
    ...{ cron, tz: tz.trim() },
    ...(startMs !== null && startMs >= 0 && { startMs }),
    ...(endMs !== null && endMs >= 0 && { endMs }),
    ...(Number.isSafeInteger(most) && most >= 1 && { limit: most }),
    ...(name !== undefined && { name }),
  }
}

export type FieldIssues = (field: string) => readonly { readonly path: string; readonly message: string }[]

/** The server's issues by the field that they concern, named as the API does. `''`: those of no field. */
export function issuesBy(problem: Problem | null, previewed: Problem['issues']): FieldIssues {
  const said = problem === null ? [] : [...problem.issues, ...payloadIssue(problem)]
  const all = (said.length > 0 ? said : previewed).map(({ path, message }) => {
    const [, field = '', ...within] = path.split('.')
    return { field, path: within.join('.'), message }
  })
  return (field) => all.filter((issue) => issue.field === field)
}

function payloadIssue({ code, message, issues }: Problem): Problem['issues'] {
  return issues.length === 0 && code.startsWith('ERR_PAYLOAD') ? [{ path: 'body.payload', message }] : []
}
