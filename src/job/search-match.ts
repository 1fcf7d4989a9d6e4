/** Whether a job is what a search looks for. Engines may leave out jobs by their indexes; this has the last word. */
import { OptionError } from '../errors.ts'
import type { JobView } from './job.ts'
import type { Redaction } from './redaction.ts'
import type { JobSearch, PayloadTerm } from './search.ts'

/**
 * A test for jobs. Payloads are compared as they are shown, so what is redacted is never found by its value. A search of a
 * part that is always redacted is refused, because it could find nothing.
 */
export function matcherOf(search: JobSearch, redaction: Redaction): (job: JobView) => boolean {
  for (const { path } of search.payload) {
    if (!redaction.hides(path, search.type)) continue
    throw new OptionError(
      `'payload.${path.join('.')}' is redacted, so it cannot be searched; search for another field, or by key or tag`,
    )
  }
  const errors = search.errors.map((error) => error.toLowerCase())
  const words = search.words.map((word) => word.toLowerCase())
  return (job) =>
    hasFacts(search, job) &&
    errors.every((error) => includes(errorTexts(job), error)) &&
    words.every((word) => includes(wordTexts(job), word)) &&
    (search.payload.length === 0 || hasPayload(search.payload, shownPayload(job, redaction)))
}

function hasFacts(search: JobSearch, job: JobView): boolean {
  const { id = job.id, type = job.type, state = job.state, key, tenant, tags, sinceMs, untilMs } = search
  return (
    job.id === id &&
    job.type === type &&
    job.state === state &&
    (key === undefined || job.key === key || job.latestKey === key) &&
    (tenant === undefined || isTenant(job, tenant)) &&
    tags.every((tag) => job.tags.includes(tag)) &&
    (sinceMs === undefined || job.createdAtMs >= sinceMs) &&
    (untilMs === undefined || job.createdAtMs < untilMs)
  )
}

function isTenant({ tenant }: JobView, wanted: string): boolean {
  if (tenant === null) return false
  return tenant.orgId === wanted || `${tenant.orgId}/${tenant.workspaceId}` === wanted
}

type Text = string | null | undefined

function errorTexts({ error }: JobView): readonly Text[] {
  return [error?.name, error?.code, error?.message]
}

function wordTexts(job: JobView): readonly Text[] {
  const { id, type, options, key, latestKey, tenant, tags } = job
  return [id, type, options?.name, key, latestKey, tenant?.orgId, tenant?.workspaceId, ...tags, ...errorTexts(job)]
}

/** Other programs may have written numbers where texts should be. */
function includes(texts: readonly Text[], part: string): boolean {
  return texts.some((text) => typeof text === 'string' && text.toLowerCase().includes(part))
}

function shownPayload({ type, payload, options }: JobView, redaction: Redaction): unknown {
  return redaction.payload(type, payload, options?.name ?? type).value
}

function hasPayload(terms: readonly PayloadTerm[], payload: unknown): boolean {
  return terms.every(({ path, value }) => {
    const found = path.reduce<unknown>((part, name) => partOf(part, name), payload)
    return Array.isArray(found) ? found.some((item) => isText(item, value)) : isText(found, value)
  })
}

function partOf(of: unknown, name: string): unknown {
  if (typeof of !== 'object' || of === null || !Object.hasOwn(of, name)) return undefined
  return Reflect.get(of, name)
}

function isText(value: unknown, wanted: string): boolean {
  return (typeof value !== 'object' || value === null) && value !== undefined && String(value) === wanted
}
