import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory } from '../evidence.ts'
import { mayBeActed, mayBeUndone } from '../life.ts'
import { finishesOf, mayBeSwept, typeOf } from '../removals.ts'

/** Removal options take what they were given for, all of it and nothing else. */
export const removal: Rule = {
  name: 'removal',
  promise: 'A finished job goes when its own option, its type or retention gives it up, and only then',
  judge(evidence, report) {
    if (!evidence.final.canFind) return report.unjudged('a store that keeps no states of jobs')
    if (evidence.faults.some(({ allows }) => allows?.some((each) => each.startsWith('lose'))))
      return report.unjudged('a history in which a fault may have undone something')
    const needed = new Set([...evidence.jobs.values()].flatMap(({ ask }) => ask?.job.after?.ids ?? []))
    const types = Map.groupBy(evidence.jobs.values(), typeOf)
    for (const stories of types.values()) {
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
  const finished = stories.filter((story) => finishesOf(story, way).length > 0 && !mayBeUndone(evidence, story))
  const lastMs = finished.map((story) =>
    Math.max(...finishesOf(story, way).map(({ answeredMs }) => answeredMs ?? Number.POSITIVE_INFINITY)),
  )
  const own = ({ ask }: JobStory): number | null | undefined =>
    way === 'complete' ? ask?.job.keepCompleted : ask?.job.keepDead
  for (const story of finished) {
    const keep = own(story)
    if (typeof keep !== 'number') continue
    const isThere = evidence.final.jobs.has(story.id)
    const finishes = finishesOf(story, way)
    const fromMs = Math.min(...finishes.map(({ askedMs }) => askedMs))
    // Engines call those the newest that arrived last, or those that finished last.
    const arrivedMs = story.ask?.atMs ?? Number.NEGATIVE_INFINITY
    const newer = finished.filter(
      (other, index) =>
        other !== story &&
        ((lastMs[index] ?? 0) >= fromMs || (other.ask?.answeredMs ?? Number.POSITIVE_INFINITY) >= arrivedMs),
    ).length
    if (!isThere && newer < keep && !mayBeSwept(evidence, story) && !mayBeActed(story, 'purge', 'erase')) {
      report.violation(
        story.id,
        `job ${story.id} is gone, and only ${newer} of its type had finished after it, not ${keep}`,
      )
    }
    const isSure = finishes.length === 1 && finishes[0]?.done === 'yes' && finishes[0].outcome.keep === 0
    if (
      keep === 0 &&
      isThere &&
      isSure &&
      !needed.has(story.id) &&
      evidence.final.jobs.get(story.id)?.state === stateOf(way)
    ) {
      report.violation(story.id, `job ${story.id} was to be removed as soon as it had finished, and is there`)
    }
  }
  judgeNumber(
    evidence,
    finished.filter((story) => own(story) === undefined && !needed.has(story.id)),
    way,
    report,
  )
}

/** Of those without an option of their own no more are there than the definition keeps. */
function judgeNumber({ final }: Evidence, stories: readonly JobStory[], way: OneWay['way'], report: Report): void {
  const finishes = stories.flatMap((story) => finishesOf(story, way))
  const numbers = new Set(finishes.map(({ outcome }) => (outcome.keepIsOwn === true ? undefined : outcome.keep)))
  const [keep] = numbers
  if (keep === undefined || numbers.size !== 1 || finishes.some(({ done }) => done !== 'yes')) return
  const there = stories.filter(({ id }) => final.jobs.get(id)?.state === stateOf(way))
  const [first] = there
  if (there.length > keep && first !== undefined) {
    const type = typeOf(first)
    report.violation(first.id, `${there.length} finished jobs of type '${type}' are there, and it keeps ${keep}`)
  }
}

function stateOf(way: OneWay['way']): string {
  return way === 'complete' ? 'completed' : 'dead_letter'
}
