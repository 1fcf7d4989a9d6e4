/** What may have removed a finished job: somebody at the desk, a removal option, or retention. */
import type { Finished } from '../../src/engine/retention.ts'
import type { Evidence, JobStory } from './evidence.ts'
import { mayBeActed, mayHave } from './life.ts'

export function mayBeRemoved(evidence: Evidence, story: JobStory): boolean {
  return mayBeActed(story, 'purge', 'erase') || mayBeBeyondKeep(evidence, story) || mayBeSwept(evidence, story)
}

/** How the job may have finished. */
export function mayFinishAs(story: JobStory): readonly Finished[] {
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

function mayBeSwept({ sweeps }: Evidence, story: JobStory): boolean {
  const ways = mayFinishAs(story)
  const type = typeOf(story)
  return sweeps.some(({ call, answer }) => {
    if (call.isDryRun || (answer?.what === 'failed' && answer.isRefusal)) return false
    return ways.some((what) => {
      const fitting = call.rules.filter((rule) => rule.what === what)
      const rule = fitting.find((one) => one.type === type) ?? fitting.find((one) => one.type === undefined)
      return rule !== undefined && rule.beforeMs !== null
    })
  })
}
