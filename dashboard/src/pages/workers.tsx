import type { Worker } from '../api/shapes.ts'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { Badge } from '../parts/badge.tsx'
import { counted, whole } from '../parts/format.ts'
import { JobId } from '../parts/id.tsx'
import { Card, PageFrame } from '../parts/page.tsx'
import { Answered, EmptyState } from '../parts/states.tsx'
import { Ago, MaybeAgo, Since } from '../parts/time.tsx'
import { conditionLabel } from '../parts/words.ts'

export function WorkersPage() {
  const workers = useAnswer('listWorkers', {})
  useFresh(workers.reload, { on: ['overview', 'jobs'], atMostEveryMs: 3_000, everyMs: 5_000 })
  return (
    <PageFrame title="Workers" lead="Who is at work, who is missing, and what each of them runs now.">
      <Answered of={workers}>
        {({ workers: all }) =>
          all.length === 0 ? (
            <NoWorkers />
          ) : (
            <ul class="cards">
              {all.map((worker) => (
                <li key={worker.id}>
                  <WorkerCard worker={worker} />
                </li>
              ))}
            </ul>
          )
        }
      </Answered>
    </PageFrame>
  )
}

function NoWorkers() {
  return (
    <EmptyState icon="workers" title="No worker has said that it lives">
      <p>
        Start one with the modules that define your jobs: <code>millrace work jobs.ts</code>
      </p>
      <p>It appears here within ten seconds.</p>
    </EmptyState>
  )
}

function WorkerCard({ worker }: { readonly worker: Worker }) {
  const { id, condition, text, lastBeatAtMs, lastJobAtMs, stoppingSinceMs, types } = worker
  const label = conditionLabel(condition)
  return (
    <Card look={`worker tone-edge-${label.tone}`}>
      <header class="worker-head">
        <h2 title={id}>{id}</h2>
        <Badge {...label} />
      </header>
      <p>{text}</p>
      <dl class="facts">
        <div>
          <dt>Heartbeat</dt>
          <dd>
            <Ago atMs={lastBeatAtMs} />
          </dd>
        </div>
        <div>
          <dt>Last job</dt>
          <dd>
            <MaybeAgo atMs={lastJobAtMs} otherwise={condition === 'running' ? 'not known' : 'none yet'} />
          </dd>
        </div>
        {stoppingSinceMs !== null && (
          <div>
            <dt>Stopping for</dt>
            <dd>
              <Since atMs={stoppingSinceMs} />
            </dd>
          </div>
        )}
        <div>
          <dt>Types</dt>
          <dd>{types.join(', ')}</dd>
        </div>
        {worker.host !== null && (
          <div>
            <dt>Host</dt>
            <dd>{worker.host}</dd>
          </div>
        )}
      </dl>
      {worker.holds !== null && <Holds holds={worker.holds} />}
      {worker.runningCount !== null && <Running worker={worker} count={worker.runningCount} />}
    </Card>
  )
}

function Holds({ holds }: { readonly holds: NonNullable<Worker['holds']> }) {
  return (
    <>
      <h3 class="small-title">
        {holds.length === 0 ? 'Holds no partition' : `Holds ${counted(holds.length, 'partition')}`}
      </h3>
      {holds.length > 0 && (
        <ul class="running">
          {holds.map(({ type, partition, lag }) => (
            <li key={`${type}/${partition}`}>
              {type} {partition} <span class="quiet">{whole(lag)} behind</span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function Running({ worker, count }: { readonly worker: Worker; readonly count: number }) {
  const { running, concurrency } = worker
  const room = concurrency === null ? '' : ` of ${concurrency} at once`
  return (
    <>
      <h3 class="small-title">
        {count === 0 ? `Runs nothing now${room === '' ? '' : `, ${concurrency} at once`}` : `Runs ${count}${room}`}
      </h3>
      {running.length > 0 && (
        <ul class="running">
          {running.map((job) => (
            <li key={job.id}>
              {job.type} <JobId id={job.id} /> <span class="quiet">for</span> <Since atMs={job.sinceMs} />
            </li>
          ))}
          {count > running.length && <li class="quiet">and {counted(count - running.length, 'other')}</li>}
        </ul>
      )}
    </>
  )
}
