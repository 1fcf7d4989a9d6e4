/**
 * BullMQ's own job schedulers. In BullMQ the worker that starts one run adds the next, so our claims must do that too, or a
 * schedule ends with the first run that we take.
 */
import { createRequire } from 'node:module'
import { moduleFile } from '../../engine/module-file.ts'
import type { RedisDatabase } from './database.ts'
import { type Fields, parse } from './rows.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

type RepeatStrategy = (fromMs: number, repeat: object) => number | undefined

interface Repeat {
  readonly pattern?: unknown
  readonly every?: unknown
  readonly limit?: unknown
  readonly count?: unknown
  readonly offset?: unknown
  readonly endDate?: unknown
  readonly immediately?: unknown
}

interface Run {
  readonly queue: string
  readonly bullId: string
  readonly fields: Fields
}

let strategy: RepeatStrategy | null = null

/** BullMQ's own reading of a pattern. */
function repeatStrategy(): RepeatStrategy {
  strategy ??= createRequire(moduleFile(import.meta.url))('bullmq').defaultRepeatStrategy as RepeatStrategy
  return strategy
}

/** Whether the job is a run of one of BullMQ's schedulers. */
export function isScheduledRun(fields: Fields): boolean {
  return fields.has('rjk')
}

/** Safe to repeat: a run adds its successor only once. */
export async function scheduleNextRun(database: RedisDatabase, nowMs: number, run: Run): Promise<void> {
  const { queue, bullId, fields } = run
  const scheduler = fields.get('rjk') ?? ''
  const next = nextRun(scheduler, parse(fields.get('opts')), nowMs)
  if (next !== null) await database.run(nextRunScript(), [queue, bullId, scheduler, next.atMs, next.opts])
}

/** As BullMQ's JobScheduler computes it. Null after the last run, or when the options cannot be read. */
function nextRun(
  scheduler: string,
  opts: unknown,
  nowMs: number,
): { readonly atMs: number | ''; readonly opts: string } | null {
  if (!isOptions(opts)) return null
  const { immediately: _, ...repeat } = opts.repeat
  const count = Number(repeat.count ?? 0) + 1
  if (repeat.limit !== undefined && count > Number(repeat.limit)) return null
  if (repeat.endDate && nowMs > new Date(String(repeat.endDate)).getTime()) return null
  const fromMs = Math.max(nowMs, Number(opts.prevMillis ?? 0))
  const atMs = whenNext(fromMs, repeat)
  if (atMs === null) return null
  const offset = repeat.every && repeat.offset ? repeat.offset : undefined
  const next = {
    ...opts,
    jobId: `repeat:${scheduler}:${atMs}`,
    prevMillis: atMs === '' ? undefined : atMs,
    repeatJobKey: scheduler,
    repeat: { ...repeat, offset, count },
  }
  return { atMs, opts: JSON.stringify(next, (_name, value: unknown) => value ?? undefined) }
}

/** '' for an interval. */
function whenNext(fromMs: number, repeat: Repeat): number | '' | null {
  if (repeat.every) return ''
  if (typeof repeat.pattern !== 'string') return null
  try {
    const atMs = repeatStrategy()(fromMs, repeat)
    return atMs === undefined ? null : Math.max(atMs, fromMs)
  } catch {
    // The pattern is invalid. The run itself still starts.
    return null
  }
}

function isOptions(opts: unknown): opts is { readonly repeat: Repeat; readonly prevMillis?: unknown } {
  return (
    typeof opts === 'object' &&
    opts !== null &&
    'repeat' in opts &&
    typeof opts.repeat === 'object' &&
    opts.repeat !== null
  )
}

/**
 * Adds the next run of one of BullMQ's job schedulers, unless it was added already. ARGV: time, queue,
 * BullMQ's id, scheduler, when by its pattern ('' where it has an interval, which BullMQ's script counts itself), the next
 * run's options as JSON.
 */
export const nextRunScript = compose(
  'next-run',
  { scripts: ['updateJobScheduler'] },
  GOES_ON_WHEN_FULL,
  `
local q, id, scheduler = queueOf(ARGV[2]), ARGV[3], ARGV[4]
-- A repeatable job of BullMQ 5 has no count of its runs, and BullMQ 6 does not continue it either.
if call('HEXISTS', q['repeat'] .. ':' .. scheduler, 'ic') == 0 then return 0 end
bull_updateJobScheduler(
  { q['repeat'], q.delayed, q.wait, q.paused, q.meta, q.prioritized, q.marker, q.id, q.events, q.pc, q.base .. id, q.active },
  { ARGV[5], scheduler, '', cmsgpack.pack(cjson.decode(ARGV[6])), now, q.base, id })
return 1
`,
)
