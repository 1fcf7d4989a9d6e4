import type { Line } from './history.ts'

/** What was done to a worker process, or to the broker (`pid` null). A kill has no end. */
export interface Blow {
  readonly what: 'kill' | 'pause' | 'leave' | 'broker'
  readonly pid: number | null
  readonly fromMs: number
  untilMs: number
}

export interface KafkaVerdict {
  /** Records that were started. */
  readonly records: number
  readonly completed: number
  /** Starts beyond the first of a record, by what became of the start before. */
  readonly repeats: {
    /** It never ended: its process was killed, paused or sent away, or had lost the partition. */
    readonly unfinished: number
    /** It had completed, and was not committed when its process was struck or the broker went away. */
    readonly uncommitted: number
  }
  /** Starts that the next owner did not know of. */
  readonly forgotten: number
  /** Late holders that were told so. */
  readonly lost: number
  /** Repeats though nobody was struck. A machine that is too busy to beat in time loses partitions as one that was paused. */
  readonly unprovoked: readonly string[]
  /** Each a sentence; empty when every guarantee held. */
  readonly violations: readonly string[]
}

/** One start of a record and what became of it. */
interface Run {
  readonly pid: number
  readonly attempt: number
  /** Of the group when it was handed out. */
  readonly generation: number
  readonly token: string
  readonly startMs: number
  doneMs: number | null
  acceptedMs: number | null
  isLost: boolean
}

interface Story {
  readonly id: string
  readonly key: string | null
  readonly partition: string
  readonly offset: number
  readonly runs: readonly Run[]
}

/** Settled work is committed within 100 ms; a loaded machine takes longer, and so does a broker that comes back. */
const COMMIT_MS_MAX = 2_000

/**
 * Judges a run by what the workers wrote down. A settle is late when somebody else, who was handed the record later, had
 * started it before the handler returned. Times are those at which handlers start and return, because a process can be
 * stopped between the engine's answer and the line about it. One that is stopped between the claim and its handler starts
 * what another has by then: the generation of the group says whose lease is the later one.
 */
export function judgeKafka(
  acknowledged: readonly string[],
  lines: readonly Line[],
  blows: readonly Blow[],
): KafkaVerdict {
  const stories = storiesOf(lines)
  const done = new Set(stories.filter(({ runs }) => runs.some(isCompleted)).map(({ id }) => id))
  const lost = acknowledged.filter((id) => !done.has(id)).map((id) => `the acknowledged record ${id} never completed`)
  const pairs = stories.flatMap((story) => pairsOf(story.runs).map(([before, after]) => ({ story, before, after })))
  const uncommitted = pairs.filter(({ before }) => before.acceptedMs !== null).length
  const forgotten = pairs.filter(({ before, after }) => after.attempt <= before.attempt)
  return {
    records: stories.length,
    completed: done.size,
    repeats: { unfinished: pairs.length - uncommitted, uncommitted },
    forgotten: forgotten.length,
    lost: lines.filter(({ what }) => what === 'lost').length,
    unprovoked: pairs
      .filter(({ before, after }) => !isExcused(before, after, blows))
      .map(({ story, before, after }) => unexcused(story, before, after, blows)),
    violations: [
      ...lost,
      ...judgeForgotten(forgotten.map(({ story }) => story)),
      ...stories.flatMap(judgeLate),
      ...[...Map.groupBy(stories, ({ key, partition }) => `${partition} ${key}`).values()].flatMap(judgeOrder),
    ],
  }
}

/** A token tells where the record stands: `member/generation/topic/partition/offset/claim`. */
function storiesOf(lines: readonly Line[]): readonly Story[] {
  const byToken = Map.groupBy(lines, ({ token }) => token)
  const runs = [...byToken.values()].flatMap((own) => {
    const start = own.find(({ what }) => what === 'start')
    if (start === undefined) return []
    const { id, key, pid, attempt, token, atMs: startMs } = start
    const [generation = '', , partition = '', offset = ''] = token.split('/').slice(-5)
    const timeOf = (wanted: Line['what']): number | null => own.find(({ what }) => what === wanted)?.atMs ?? null
    const ends = { doneMs: timeOf('done'), acceptedMs: timeOf('accepted'), isLost: timeOf('lost') !== null }
    return [
      {
        id,
        key,
        partition,
        offset: Number(offset),
        run: { pid, attempt, generation: Number(generation), token, startMs, ...ends },
      },
    ]
  })
  return [...Map.groupBy(runs, ({ partition, offset }) => `${partition}/${offset}`).values()].flatMap((members) => {
    const [first] = members
    if (first === undefined) return []
    const { id, key, partition, offset } = first
    return { id, key, partition, offset, runs: members.map(({ run }) => run).sort((a, b) => a.startMs - b.startMs) }
  })
}

/** A process can be killed between the engine's answer and the line about it; that its handler returned must do then. */
function isCompleted({ acceptedMs, doneMs, isLost }: Run): boolean {
  return acceptedMs !== null || (doneMs !== null && !isLost)
}

function pairsOf(runs: readonly Run[]): readonly (readonly [Run, Run])[] {
  return runs.slice(1).flatMap((after, index) => {
    const before = runs[index]
    return before === undefined ? [] : [[before, after] as const]
  })
}

/** A first start is stored a moment later; one that was forgotten is stored before it begins again. */
function judgeForgotten(stories: readonly Story[]): readonly string[] {
  return [...Map.groupBy(stories, (story) => story)]
    .filter(([, times]) => times.length > 1)
    .map(([{ id }, times]) => `${times.length} starts of ${id} were forgotten`)
}

function judgeLate({ id, runs }: Story): readonly string[] {
  return runs.flatMap((run) => {
    const { acceptedMs, doneMs, startMs, generation } = run
    if (acceptedMs === null || doneMs === null) return []
    const next = runs.find((other) => other.startMs > startMs && other.generation >= generation)
    return next !== undefined && next.startMs < doneMs
      ? [
          `a settle of ${id} by ${run.token} was accepted ${Math.round(doneMs - next.startMs)} ms after ${next.token} had started`,
        ]
      : []
  })
}

/** Each record of a key was completed for the first time after all that stand before it. */
function judgeOrder(stories: readonly Story[]): readonly string[] {
  const violations: string[] = []
  let lastMs = Number.NEGATIVE_INFINITY
  for (const { id, key, runs } of stories.toSorted((a, b) => a.offset - b.offset)) {
    const times = runs.filter(({ acceptedMs }) => acceptedMs !== null).flatMap(({ doneMs }) => doneMs ?? [])
    if (times.length === 0) continue
    const firstMs = Math.min(...times)
    if (firstMs < lastMs) violations.push(`${id} of key ${key} was completed before one that stands before it`)
    lastMs = Math.max(lastMs, firstMs)
  }
  return violations
}

/** Whether the contract allows `after`: what happened to `before` that it was not the last? */
function isExcused(before: Run, after: Run, blows: readonly Blow[]): boolean {
  const fromMs = before.acceptedMs ?? before.startMs
  const untilMs = before.acceptedMs === null ? after.startMs : before.acceptedMs + COMMIT_MS_MAX
  return blows.some(
    (blow) => (blow.pid === before.pid || blow.what === 'broker') && blow.fromMs <= untilMs && blow.untilMs >= fromMs,
  )
}

function unexcused({ id }: Story, before: Run, after: Run, blows: readonly Blow[]): string {
  const how = before.acceptedMs === null ? (before.isLost ? 'was lost' : 'had no end') : 'had completed'
  const sinceMs = before.acceptedMs ?? before.startMs
  const gapMs = Math.round(after.startMs - sinceMs)
  const next = blows.find(({ pid, fromMs }) => pid === before.pid && fromMs > sinceMs)
  const then =
    next === undefined ? 'nobody was struck' : `it was struck only after ${Math.round(next.fromMs - sinceMs)} ms`
  return `${id} was started again by ${after.token} ${gapMs} ms after ${before.token} ${how}, and ${then}`
}
