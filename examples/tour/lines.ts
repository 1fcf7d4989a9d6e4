import type { Mill } from 'millrace'
import type { Outcome } from 'millrace/engine'

/** What the tour shows; each kind is removed once it has happened. */
const KINDS = ['completed', 'retried', 'dead', 'progress', 'delayed', 'superseded', 'cancelled'] as const
type Kind = (typeof KINDS)[number]

/** Prints a line per event, for a pipe or a log file. Resolves `allSeen` when every kind has happened. */
export function printLines(mill: Mill, print: (line: string) => void): { readonly allSeen: Promise<void> } {
  const { promise: allSeen, resolve } = Promise.withResolvers<void>()
  const missing = new Set<Kind>(KINDS)
  const say = (kind: Kind, type: string, id: string, rest: string): void => {
    print(`${kind.padEnd(10)} ${type.padEnd(14)} ${id}${rest === '' ? '' : `  ${rest}`}`)
    if (!missing.delete(kind) || missing.size > 0) return
    print('every kind of ending has happened once')
    resolve()
  }
  mill.events.on('job.settled', ({ job, attempt, outcome, durationMs }) => {
    const wasDelayed = job.runAtMs - job.createdAtMs > 1_000 && attempt === 1
    const kind = wasDelayed && outcome.kind === 'complete' ? 'delayed' : kindOf(outcome)
    if (kind !== null)
      say(kind, job.type, job.id, `attempt ${attempt} of ${job.attempts}, ${describe(outcome, durationMs)}`)
  })
  mill.events.on('job.progress', ({ job, progress }) => {
    if (missing.has('progress')) say('progress', job.type, job.id, JSON.stringify(progress))
  })
  mill.events.on('job.enqueued', ({ id, type, status }) => {
    if (status === 'replaced') say('superseded', type, id, 'this one took the place of one that waited')
  })
  mill.events.on('job.cancelled', ({ id, who, reason }) => say('cancelled', '', id, `by ${who}: ${reason}`))
  return { allSeen }
}

function kindOf(outcome: Outcome): Kind | null {
  switch (outcome.kind) {
    case 'complete':
      return 'completed'
    case 'retry':
      return 'retried'
    case 'dead':
      return 'dead'
    case 'release':
      return null
    default:
      outcome satisfies never
      return null
  }
}

function describe(outcome: Outcome, durationMs: number): string {
  switch (outcome.kind) {
    case 'complete':
      return `took ${Math.round(durationMs)} ms`
    case 'retry':
      return `again in ${outcome.delayMs} ms: ${outcome.error.message}`
    case 'dead':
      return outcome.error.message
    case 'release':
      return outcome.reason
    default:
      outcome satisfies never
      return ''
  }
}
