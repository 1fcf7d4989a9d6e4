/** What may have removed a finished job: an act at the desk, a removal option, or retention. */
import type { Finished } from '../../src/engine/retention.ts'
import type { Evidence, JobStory, Settle } from './evidence.ts'
import { CLOCK_MS, mayBeActed, mayHave } from './life.ts'

export function mayBeRemoved(evidence: Evidence, story: JobStory): boolean {
  return mayBeActed(story, 'purge', 'erase') || mayBeGivenUp(evidence, story)
}

/** By a removal option or by retention. */
export function mayBeGivenUp(evidence: Evidence, story: JobStory): boolean {
  return mayBeBeyondKeep(evidence, story) || mayBeSwept(evidence, story)
}

/** How the job may have finished. */
function mayFinishAs(story: JobStory): readonly Finished[] {
  return [
    ...(mayHave(story, 'complete') ? (['completed'] as const) : []),
    ...(mayHave(story, 'dead') ? (['dead'] as const) : []),
    ...(mayBeActed(story, 'cancel', 'discard') || story.ask?.job.latest !== undefined ? (['ended'] as const) : []),
  ]
}

export function typeOf({ ask, asks, starts }: JobStory): string {
  return (ask ?? asks[0])?.job.type ?? starts[0]?.lease.type ?? ''
}

/** By its own option, or by the number that its type's definition keeps; null keeps it in any case. */
function mayBeBeyondKeep(evidence: Evidence, story: JobStory): boolean {
  const { keepCompleted, keepDead } = story.ask?.job ?? {}
  const type = typeOf(story)
  return mayFinishAs(story).some((what) => {
    if (what === 'ended') return false
    const own = what === 'completed' ? keepCompleted : keepDead
    if (own !== undefined) return own !== null
    return keptTypes(evidence)[what].has(type)
  })
}

interface KeptTypes {
  readonly completed: ReadonlySet<string>
  readonly dead: ReadonlySet<string>
}

const kept = new WeakMap<Evidence, KeptTypes>()

/** The types whose definitions keep a number: some outcome was settled with one that was not the job's own. */
function keptTypes(evidence: Evidence): KeptTypes {
  const known = kept.get(evidence)
  if (known !== undefined) return known
  const [completed, dead] = [new Set<string>(), new Set<string>()]
  for (const { starts } of evidence.jobs.values()) {
    for (const { lease, settles } of starts) {
      for (const { outcome, done } of settles) {
        if (done === 'no' || outcome.keep === undefined || outcome.keepIsOwn === true) continue
        if (outcome.kind === 'complete') completed.add(lease.type)
        if (outcome.kind === 'dead') dead.add(lease.type)
      }
    }
  }
  const types = { completed, dead }
  kept.set(evidence, types)
  return types
}

/** The outcomes that may have finished the job in this way. */
export function finishesOf({ starts }: JobStory, kind: 'complete' | 'dead'): readonly Settle[] {
  return starts.flatMap(({ settles }) => settles.filter(({ outcome, done }) => outcome.kind === kind && done !== 'no'))
}

/** Some sweep removed what had finished that way before a time, and the job may be among it. */
export function mayBeSwept(evidence: Evidence, story: JobStory): boolean {
  if (evidence.sweeps.length === 0) return false
  const type = typeOf(story)
  return mayFinishAs(story).some((what) => sweptBeforeMs(evidence, what, type) > mayFinishFromMs(evidence, story, what))
}

const swept = new WeakMap<Evidence, Map<string, number>>()

/** The latest time up to which jobs of the type were swept that had finished in this way. A clock that was set sweeps up to any. */
function sweptBeforeMs(evidence: Evidence, what: Finished, type: string): number {
  const times = swept.get(evidence) ?? new Map<string, number>()
  swept.set(evidence, times)
  const known = times.get(`${what} ${type}`)
  if (known !== undefined) return known
  let latestMs = Number.NEGATIVE_INFINITY
  for (const { call, answer, atMs } of evidence.sweeps) {
    if (call.isDryRun || (answer?.what === 'failed' && answer.isRefusal)) continue
    const fitting = call.rules.filter((rule) => rule.what === what)
    const rule = fitting.find((one) => one.type === type) ?? fitting.find((one) => one.type === undefined)
    const beforeMs = rule?.beforeMs ?? Number.NEGATIVE_INFINITY
    if (beforeMs === Number.NEGATIVE_INFINITY) continue
    const isSet = evidence.trouble.wallClock.meets(atMs, answer?.atMs ?? evidence.endMs)
    latestMs = Math.max(latestMs, isSet ? Number.POSITIVE_INFINITY : beforeMs)
  }
  times.set(`${what} ${type}`, latestMs)
  return latestMs
}

/** The first moment at which it may have finished in this way, by the wall clock that sweeps go by. */
function mayFinishFromMs({ trouble, endMs }: Evidence, story: JobStory, what: Finished): number {
  const { ask, acts } = story
  const ended = acts.filter(({ kind, done }) => done !== 'no' && (kind === 'cancel' || kind === 'discard'))
  // A version is superseded at some time after it was asked for.
  const superseded =
    ask === null || ask.job.latest === undefined ? [] : [{ askedMs: ask.atMs, wallMs: ask.wallMs, answeredMs: null }]
  const ends = {
    completed: finishesOf(story, 'complete'),
    dead: finishesOf(story, 'dead'),
    ended: [...ended, ...superseded],
  }
  const times = ends[what].map(({ askedMs, answeredMs, wallMs }) =>
    trouble.wallClock.meets(askedMs, answeredMs ?? endMs) ? Number.NEGATIVE_INFINITY : wallMs - CLOCK_MS,
  )
  return Math.min(...times)
}
