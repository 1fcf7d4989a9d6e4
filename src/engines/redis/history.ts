import { JOB_EVENT_NAMES, type JobEvent, type JobEventName, newestHistory } from '../../job/job.ts'
import { attemptOf, composeRead, parse, type Row, startsOf, timeOf, toView } from './rows.ts'

type Line = Omit<JobEvent, 'jobId'>

/**
 * A job's history, oldest first: from the lines in BullMQ's log of the job, and from its hash, which has the time it was
 * stored, the present start, the completion, and a death that only a BullMQ worker knew of.
 */
export function readHistory(row: Row, log: readonly unknown[]): readonly JobEvent[] {
  const view = toView(row)
  if (view === null) return []
  const lines: Line[] = [line('enqueued', view.createdAtMs, 0)]
  for (const text of log) {
    const stored = readLine(text)
    if (stored !== null) lines.push(stored)
  }
  for (const event of impliedEvents(row, lines)) lines.push(event)
  const events = lines.filter(({ name }, index) => name !== 'started' || lines[index - 1]?.name !== 'expired')
  return newestHistory(events.map((event) => ({ jobId: view.id, ...event })))
}

function impliedEvents({ place, fields }: Row, lines: readonly Line[]): readonly Line[] {
  const worker = fields.get('pb') ?? null
  const startedAtMs = timeOf(fields, 'processedOn')
  const finishedAtMs = timeOf(fields, 'finishedOn') ?? startedAtMs ?? 0
  const attempt = place === 'active' ? attemptOf(fields) : startsOf(fields)
  const start = startedAtMs === null ? [] : [line('started', startedAtMs, attempt, worker)]
  if (place === 'active') return start
  if (place === 'completed') {
    const tookMs = Number(fields.get('mrTook') ?? finishedAtMs - (startedAtMs ?? finishedAtMs))
    return [...start, line('completed', finishedAtMs, attempt, worker, { durationMs: tookMs })]
  }
  if (place !== 'failed' || lines.at(-1)?.name === 'dead') return []
  const detail = { error: { name: 'Error', code: null, message: fields.get('failedReason') ?? '', stack: null } }
  return [...start, line('failed', finishedAtMs, attempt, worker, detail), line('dead', finishedAtMs, attempt)]
}

function line(
  name: JobEventName,
  atMs: number,
  attempt: number,
  worker: string | null = null,
  detail: Line['detail'] = null,
): Line {
  return { atMs, name, attempt, worker, detail }
}

/** Other programs write plain text to the log. */
function readLine(text: unknown): Line | null {
  const value = typeof text === 'string' && text.startsWith('{') ? parse(text) : null
  if (typeof value !== 'object' || value === null) return null
  const read = (name: string): unknown => Reflect.get(value, name)
  const [event, at, attempt, worker, detail] = ['event', 'at', 'attempt', 'worker', 'detail'].map(read)
  const name = JOB_EVENT_NAMES.find((known) => known === event)
  if (name === undefined || typeof at !== 'number') return null
  return {
    name,
    atMs: at,
    attempt: typeof attempt === 'number' ? attempt : 0,
    worker: typeof worker === 'string' ? worker : null,
    detail: isDetail(detail) ? detail : null,
  }
}

function isDetail(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** ARGV: time, id. Answers its row and the lines of its log, or 0. */
export const historyScript = composeRead(
  'history',
  `
local q, id = find(ARGV[2])
if not q then return 0 end
return { rowOf(q, id), call('LRANGE', q.base .. id .. ':logs', 0, -1) }
`,
)
