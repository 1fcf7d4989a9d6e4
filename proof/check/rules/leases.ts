import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory, Start, Stray } from '../evidence.ts'
import { givenMs, isHeldUp, mayHaveEnded } from '../life.ts'

export const leases: Rule = {
  name: 'I4',
  promise: 'A job has at most one live lease, each under a token of its own; a latest key has at most one in flight',
  judge(evidence, report) {
    for (const story of evidence.jobs.values()) {
      judgeTokens(story, report)
      story.starts.forEach((start, index) => {
        const before = story.starts[index - 1]
        if (before !== undefined) judgePair(evidence, { story, before, start }, report)
      })
    }
    if (evidence.capabilities.latest) judgeLatest(evidence, report)
    for (const { id, by, what } of evidence.strays) report.violation(id, `${by} ${STRAY[what]} job ${id}`)
  },
}

const STRAY = {
  began: 'had no lease from a claim, and began',
  'began-again': 'used one lease twice to begin',
  settled: 'had no lease from a claim, and settled',
} as const satisfies Readonly<Record<Stray['what'], string>>

function judgeTokens({ id, starts }: JobStory, report: Report): void {
  if (starts.length < 2) return
  const tokens = new Set<string>()
  for (const { lease } of starts) {
    if (tokens.has(lease.token)) report.violation(id, `two leases of job ${id} have the token ${lease.token}`)
    tokens.add(lease.token)
  }
}

interface Pair {
  /** Of the lease before. */
  readonly story: JobStory
  readonly before: Start
  readonly start: Start
}

function judgePair(evidence: Evidence, pair: Pair, report: Report): void {
  const { story, before, start } = pair
  if (mayHaveEnded(evidence, story, before, givenMs(start))) return
  if (evidence.capabilities.recovery === 'engine') {
    // The store watches over its members itself, and hands the jobs of one that is late to another.
    report.unjudged('leases that the store gave to another without saying why')
    return
  }
  if (isHeldUp(start.claim)) {
    report.unjudged('claims whose answer was held up')
    return
  }
  const what = before.lease.id === start.lease.id ? 'the same job' : `${before.lease.id}, of the same latest key,`
  report.violation(
    start.lease.id,
    `job ${start.lease.id} was given to ${start.claim.worker} while ${before.claim.worker} held ${what} for ${Math.round(givenMs(start) - givenMs(before))} ms and had not lost or settled it`,
  )
}

/** The leases of one latest key, of whatever versions. */
function judgeLatest(evidence: Evidence, report: Report): void {
  const byKey = new Map<string, Start[]>()
  for (const { starts } of evidence.jobs.values()) {
    for (const start of starts) {
      if (start.lease.latestKey === undefined) continue
      const key = `${start.lease.type}\n${start.lease.latestKey}`
      const own = byKey.get(key)
      if (own === undefined) byKey.set(key, [start])
      else own.push(start)
    }
  }
  for (const starts of byKey.values()) {
    starts.sort((a, b) => givenMs(a) - givenMs(b))
    starts.forEach((start, index) => {
      const before = starts[index - 1]
      if (before === undefined || before.lease.id === start.lease.id) return
      const story = evidence.jobs.get(before.lease.id)
      if (story !== undefined) judgePair(evidence, { story, before, start }, report)
    })
  }
}
