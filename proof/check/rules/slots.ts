import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory, Start } from '../evidence.ts'
import { CLOCK_MS, givenMs, leaseMs } from '../life.ts'

/** A type's slots, or those of each of its tenants, hold over all workers. */
export const slots: Rule = {
  name: 'slots',
  promise:
    'Never do more jobs of a type hold a lease at once than it has slots, nor of a tenant where each has its own',
  excuse: ({ slots: promised }) => (promised === 'shared' ? null : 'it does not count running jobs over all workers'),
  judge(evidence, report) {
    for (const [type, holds] of slottedHolds(evidence)) {
      const [first] = holds
      if (first === undefined) continue
      const { max, by } = first
      if (holds.some((hold) => hold.max !== max || hold.by !== by))
        report.unjudged('types with several numbers of slots')
      else for (const own of groupsOf(holds)) judgeGroup(evidence, { type, max, by, holds: own }, report)
    }
  },
}

/** While a start surely had its slot. */
interface Hold {
  readonly start: Start
  readonly group: string
  readonly fromMs: number
  readonly toMs: number
  readonly max: number
  readonly by: 'tenant' | null
}

function slottedHolds({ jobs }: Evidence): ReadonlyMap<string, readonly Hold[]> {
  const holds = [...jobs.values()].flatMap((story) =>
    story.starts.flatMap((start) => {
      const { lease, claim } = start
      const of = claim.source === 'ready' ? (claim.subscription?.types.get(lease.type)?.slots ?? null) : null
      if (of === null || claim.isGivenUp) return []
      const group = of.by === null ? '' : (lease.orgId ?? lease.tenant ?? '')
      const [fromMs, toMs] = [givenMs(start), surelyUntilMs(story, start)]
      return toMs > fromMs ? [{ start, group, fromMs, toMs, ...of }] : []
    }),
  )
  return Map.groupBy(holds, ({ start }) => start.lease.type)
}

/** The first moment at which the lease may have ended: renewals are not in a history, so also when it would run out. */
function surelyUntilMs({ acts }: JobStory, start: Start): number {
  const { settles, lostMs, claim } = start
  const cancels = acts.filter(({ kind, done, askedMs }) => kind === 'cancel' && done !== 'no' && askedMs > claim.atMs)
  return Math.min(
    claim.atMs + leaseMs(start) - CLOCK_MS,
    lostMs ?? Number.POSITIVE_INFINITY,
    ...settles.filter(({ done }) => done !== 'no').map(({ askedMs }) => askedMs),
    ...cancels.map(({ askedMs }) => askedMs),
  )
}

function groupsOf(holds: readonly Hold[]): Iterable<readonly Hold[]> {
  return Map.groupBy(holds, ({ group }) => group).values()
}

interface Group {
  readonly type: string
  readonly max: number
  readonly by: 'tenant' | null
  readonly holds: readonly Hold[]
}

function judgeGroup({ trouble }: Evidence, { type, max, by, holds }: Group, report: Report): void {
  const sorted = holds.toSorted((a, b) => a.fromMs - b.fromMs)
  let open: Hold[] = []
  for (const hold of sorted) {
    open = [...open.filter(({ toMs }) => toMs > hold.fromMs), hold]
    if (open.length <= max) continue
    const fromMs = Math.min(...open.map(({ start }) => start.claim.atMs))
    if (trouble.wallClock.meets(fromMs, hold.fromMs) || trouble.undo(type).meets(fromMs, hold.fromMs)) {
      report.unjudged('slots while a fault may have undone a lease')
      continue
    }
    const whose = by === null ? `type '${type}'` : `type '${type}' of tenant '${hold.group}'`
    report.violation(hold.start.lease.id, `${open.length} jobs of ${whose} were held at once, and it has ${max} slots`)
  }
}
