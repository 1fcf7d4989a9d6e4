import type { ComponentChildren } from 'preact'
import type { JobDetail } from '../../api/shapes.ts'
import { duration } from '../../parts/format.ts'
import { Tags } from '../../parts/tags.tsx'
import { Ago, Exact, MaybeAgo } from '../../parts/time.tsx'
import { startsOf } from '../../parts/words.ts'

type Fact = readonly [name: string, value: ComponentChildren]

export function Facts({ job }: { readonly job: JobDetail }) {
  return (
    <dl class="facts">
      {factsOf(job).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function factsOf(job: JobDetail): readonly Fact[] {
  const facts: readonly (Fact | false)[] = [
    ['Attempts', `${startsOf(job)} of at most ${job.attempts}`],
    ['Priority', `${job.priority}${job.priority === 1 ? ' (first)' : ''}`],
    ['Enqueued', job.createdAtMs === null ? 'unreadable' : <Exact key="at" atMs={job.createdAtMs} />],
    job.state === 'queued' && ['Due', <MaybeAgo key="at" atMs={job.runAtMs} otherwise="unreadable" />],
    job.startedAtMs !== null && ['Started', <Exact key="at" atMs={job.startedAtMs} />],
    job.completedAtMs !== null && ['Ended', <Exact key="at" atMs={job.completedAtMs} />],
    job.durationMs !== null && ['Took', duration(job.durationMs)],
    job.leaseOwner !== null && ['Held by', <code key="owner">{job.leaseOwner}</code>],
    job.leaseUntilMs !== null && ['Lease ends', <Ago key="at" atMs={job.leaseUntilMs} />],
    job.replays > 0 && ['Replayed', `${job.replays} ×`],
    job.key !== null && ['Key', <code key="key">{job.key}</code>],
    job.latestKey !== null && ['Latest key', <code key="key">{job.latestKey}</code>],
    job.tenant !== null && ['Tenant', [job.tenant.orgId, job.tenant.workspaceId].filter(Boolean).join(' / ')],
    job.tags.length > 0 && ['Tags', <Tags key="tags" tags={job.tags} />],
    job.payloadVersion !== 1 && ['Payload version', job.payloadVersion],
    job.after !== null && ['If one before it dies', IF_DEAD[job.after.ifDead]],
    job.options !== null &&
      Object.keys(job.options).length > 0 && ['Options', <code key="o">{JSON.stringify(job.options)}</code>],
  ]
  return facts.filter((fact) => fact !== false)
}

const IF_DEAD = {
  wait: 'it waits until that one is replayed',
  run: 'it runs anyway',
  die: 'it dies too',
} as const
