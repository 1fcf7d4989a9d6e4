import type { Report, Rule } from '../check.ts'
import type { Ask, Evidence, JobStory, Start } from '../evidence.ts'
import { givenMs, mayBeActed, mayBeUndone } from '../life.ts'

/** Of the versions of a latest key the newest wins. */
export const latest: Rule = {
  name: 'latest',
  promise:
    'The newest version of a latest key wins: no older one starts after a newer, and none is ended without a newer',
  excuse: ({ latest: promised }) => (promised ? null : 'it has no latest keys'),
  judge(evidence, report) {
    for (const versions of versionsOf(evidence).values()) {
      if (versions.some(({ story }) => mayBeUndone(evidence, story))) {
        report.unjudged('latest keys of a time that a fault may have undone')
        continue
      }
      judgeStarts(versions, report)
      judgeWaiting(versions, report)
      judgeReceipts(versions, report)
      judgeEnds(evidence, versions, report)
    }
  },
}

interface Version {
  readonly story: JobStory
  /** The time that stored it or may have; otherwise the first. */
  readonly ask: Ask
}

function versionsOf({ jobs }: Evidence): ReadonlyMap<string, readonly Version[]> {
  const versions = [...jobs.values()].flatMap((story) => {
    const ask = story.ask ?? story.asks[0]
    return ask?.job.latest === undefined ? [] : [{ story, ask }]
  })
  return Map.groupBy(versions, ({ ask: { job } }) => `${job.type}\n${job.latest?.key}`)
}

/** Surely newer: a higher number, or asked for after the other was acknowledged. */
function isNewer(one: Ask, other: Ask): boolean {
  const [mine, theirs] = [one.job.latest?.seq ?? null, other.job.latest?.seq ?? null]
  if (mine !== null && theirs !== null) return mine > theirs
  return other.answeredMs !== null && one.atMs > other.answeredMs
}

function judgeStarts(versions: readonly Version[], report: Report): void {
  const starts = versions
    .flatMap(({ story, ask }) => story.starts.map((start) => ({ start, ask })))
    .filter(({ start }) => start.claim.source === 'ready')
    .sort((a, b) => givenMs(a.start) - givenMs(b.start))
  let newest: { start: Start; ask: Ask } | null = null
  for (const { start, ask } of starts) {
    if (newest !== null && isNewer(newest.ask, ask) && start.claim.atMs > givenMs(newest.start)) {
      const { id } = ask.job
      report.violation(id, `job ${id} was started after ${newest.ask.job.id}, a newer version of its latest key`)
    }
    if (newest === null || !isNewer(newest.ask, ask)) newest = { start, ask }
  }
}

/** A version that waits ends when a newer one is stored, and so does one that would wait again after it ran. */
function judgeWaiting(versions: readonly Version[], report: Report): void {
  for (const { story, ask } of versions) {
    if (mayBeActed(story, 'replay')) continue
    for (const { claim } of story.starts) {
      if (claim.source !== 'ready') continue
      const newer = versions.find(
        (other) =>
          (other.ask.status === 'enqueued' || other.ask.status === 'replaced') &&
          // A running version may wait again once the newer one was cancelled.
          !mayBeActed(other.story, 'cancel') &&
          (other.ask.answeredMs ?? Number.POSITIVE_INFINITY) < claim.atMs &&
          isNewer(other.ask, ask),
      )
      if (newer === undefined) continue
      report.violation(
        story.id,
        `job ${story.id} was given to ${claim.worker} after ${newer.story.id}, a newer version of its latest key, was stored`,
      )
    }
  }
}

/** What is answered as stale or replaced needs a version that was newer, or older. */
function judgeReceipts(versions: readonly Version[], report: Report): void {
  for (const { story, ask } of versions) {
    const others = versions.filter((other) => other.story !== story && other.story.ask !== null)
    const answeredMs = ask.answeredMs ?? Number.POSITIVE_INFINITY
    if (ask.status === 'stale') {
      const seq = ask.job.latest?.seq ?? Number.POSITIVE_INFINITY
      // A version without a number takes the next one, whatever that is, so it is never stale itself.
      const isStale =
        seq !== Number.POSITIVE_INFINITY &&
        others.some(
          (other) => other.ask.atMs < answeredMs && (other.ask.job.latest?.seq ?? Number.POSITIVE_INFINITY) >= seq,
        )
      if (!isStale) report.violation(story.id, `job ${story.id} was answered as stale, and no newer version was there`)
    }
    if (ask.status === 'replaced' && !others.some((other) => other.ask.atMs < answeredMs)) {
      report.violation(story.id, `job ${story.id} was answered as replacing another version, and there was none`)
    }
  }
}

function judgeEnds({ final }: Evidence, versions: readonly Version[], report: Report): void {
  for (const { story, ask } of versions) {
    if (final.jobs.get(story.id)?.state !== 'superseded') continue
    const others = versions.filter((other) => other.story !== story && other.story.ask !== null)
    if (others.some((other) => !isNewer(ask, other.ask))) continue
    report.violation(story.id, `job ${story.id} is superseded, and no newer version of its latest key was stored`)
  }
}
