import type { JobState } from '../../../src/job/states.ts'
import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory } from '../evidence.ts'
import { lastMoves, mayBeActed, mayBeUndone, predecessorOf } from '../life.ts'
import { finishesOf, mayBeSwept, typeOf } from '../removals.ts'

/** Removal options take what they were given for, all of it and nothing else. */
export const removal: Rule = {
  name: 'removal',
  promise: 'A finished job goes when its own option, its type or retention gives it up, and only then',
  judge(evidence, report) {
    if (!evidence.final.canFind) return report.unjudged('a store that keeps no states of jobs')
    const needed = new Set(
      [...evidence.jobs.values()].flatMap((story) =>
        (story.ask?.job.after?.ids ?? []).map((id) => predecessorOf(evidence, story, id)?.id ?? id),
      ),
    )
    const types = Map.groupBy(evidence.jobs.values(), typeOf)
    for (const [type, stories] of types) {
      if (!evidence.trouble.undo(type).isEmpty) {
        report.unjudged('types of which a fault may have undone something')
        continue
      }
      for (const way of ['complete', 'dead'] as const) judgeType(evidence, { stories, way, needed }, report)
    }
  },
}

interface OneWay {
  readonly stories: readonly JobStory[]
  readonly way: 'complete' | 'dead'
  /** Jobs that others come after are kept for them. */
  readonly needed: ReadonlySet<string>
}

function judgeType(evidence: Evidence, { stories, way, needed }: OneWay, report: Report): void {
  const finished = stories
    .filter((story) => finishesOf(story, way).length > 0 && !mayBeUndone(evidence, story))
    .map((story) => ({ story, ...timesOf(story, way) }))
  const own = ({ ask }: JobStory): number | null | undefined =>
    way === 'complete' ? ask?.job.keepCompleted : ask?.job.keepDead
  for (const one of finished) {
    const keep = own(one.story)
    if (typeof keep !== 'number') continue
    const { id } = one.story
    const view = evidence.final.jobs.get(id)
    if (view === undefined) {
      // One that was replayed may have gone by how it ended then.
      if (lastMoves(one.story).every(({ to }) => to === stateOf(way)))
        judgeGone(evidence, { one, finished, keep }, report)
    } else if (keep === 0 && view.state === stateOf(way) && !needed.has(id) && isSurelyRemoved(one.story, way)) {
      report.violation(id, `job ${id} was to be removed as soon as it had finished, and is there`)
    }
  }
  const others = finished.filter(({ story }) => own(story) === undefined && !needed.has(story.id))
  judgeNumber(
    evidence,
    others.map(({ story }) => story),
    way,
    report,
  )
}

interface Finished {
  readonly story: JobStory
  /** When it may have finished. */
  readonly fromMs: number
  readonly toMs: number
}

function timesOf(story: JobStory, way: OneWay['way']): Pick<Finished, 'fromMs' | 'toMs'> {
  const finishes = finishesOf(story, way)
  return {
    fromMs: Math.min(...finishes.map(({ askedMs }) => askedMs)),
    toMs: Math.max(...finishes.map(({ answeredMs }) => answeredMs ?? Number.POSITIVE_INFINITY)),
  }
}

function isSurelyRemoved(story: JobStory, way: OneWay['way']): boolean {
  const [only, ...more] = finishesOf(story, way)
  return more.length === 0 && only?.done === 'yes' && only.outcome.keep === 0
}

interface Gone {
  readonly one: Finished
  readonly finished: readonly Finished[]
  readonly keep: number
}

/** Engines call those the newest that arrived last, or those that finished last. */
function judgeGone(evidence: Evidence, { one, finished, keep }: Gone, report: Report): void {
  const { story, fromMs } = one
  if (mayBeSwept(evidence, story) || mayBeActed(story, 'purge', 'erase')) return
  const arrivedMs = story.ask?.atMs ?? Number.NEGATIVE_INFINITY
  const newer = finished.filter(
    (other) =>
      other !== one && (other.toMs >= fromMs || (other.story.ask?.answeredMs ?? Number.POSITIVE_INFINITY) >= arrivedMs),
  ).length
  if (newer >= keep) return
  report.violation(
    story.id,
    `job ${story.id} is gone, and only ${newer} of its type had finished after it, not ${keep}`,
  )
}

/** Of those without an option of their own no more are there than the definition keeps. */
function judgeNumber({ final }: Evidence, stories: readonly JobStory[], way: OneWay['way'], report: Report): void {
  const finishes = stories.flatMap((story) => finishesOf(story, way))
  const numbers = new Set(finishes.map(({ outcome }) => (outcome.keepIsOwn === true ? undefined : outcome.keep)))
  const [keep] = numbers
  if (keep === undefined || numbers.size !== 1 || finishes.some(({ done }) => done !== 'yes')) return
  // A letter whose discard was undone is there again, whatever came meanwhile.
  const there = stories.filter(
    (story) => final.jobs.get(story.id)?.state === stateOf(way) && !mayBeActed(story, 'undo'),
  )
  const [first] = there
  if (there.length > keep && first !== undefined) {
    const type = typeOf(first)
    report.violation(first.id, `${there.length} finished jobs of type '${type}' are there, and it keeps ${keep}`)
  }
}

function stateOf(way: OneWay['way']): JobState {
  return way === 'complete' ? 'completed' : 'dead_letter'
}
