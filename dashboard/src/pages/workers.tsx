import type { ComponentChildren } from 'preact'
import { useApi } from '../api/context.ts'
import type { Worker } from '../api/shapes.ts'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { ActDialog } from '../parts/act-dialog.tsx'
import { Badge } from '../parts/badge.tsx'
import { ActButton } from '../parts/fields.tsx'
import { bytes, counted, duration, rate, whole } from '../parts/format.ts'
import { JobId } from '../parts/id.tsx'
import { Card, PageFrame } from '../parts/page.tsx'
import { Answered, EmptyState } from '../parts/states.tsx'
import { Ago, MaybeAgo, Since } from '../parts/time.tsx'
import { useToast } from '../parts/toast.tsx'
import { useAsked } from '../parts/use-asked.ts'
import { conditionLabel } from '../parts/words.ts'

export function WorkersPage() {
  const workers = useAnswer('listWorkers', {})
  const { asked, ask, ends } = useAsked<Worker>(workers.reload)
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
                  <WorkerCard worker={worker} drain={() => ask(worker)} />
                </li>
              ))}
            </ul>
          )
        }
      </Answered>
      {asked !== null && <Drain worker={asked} {...ends} />}
    </PageFrame>
  )
}

interface DrainProps {
  readonly worker: Worker
  readonly onClose: () => void
  readonly onDone: () => void
}

function Drain({ worker: { id }, onClose, onDone }: DrainProps) {
  const api = useApi()
  const toast = useToast()
  return (
    <ActDialog<unknown>
      title={`Drain ${id}?`}
      verb="Drain"
      danger
      act={(reason) => api.call('drainWorker', { params: { id }, body: { ...(reason !== undefined && { reason }) } })}
      onDone={() => {
        toast({ text: `Asked to drain: ${id}` })
        onDone()
      }}
      onClose={onClose}
    >
      <p>
        Within two seconds it takes no more jobs. It finishes those that it runs and stops, as on SIGTERM. A process
        that has no other worker ends, with this dashboard if it serves it; only a supervisor starts it again.
      </p>
    </ActDialog>
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

function WorkerCard({ worker, drain }: { readonly worker: Worker; readonly drain: () => void }) {
  const { id, condition, text } = worker
  const label = conditionLabel(condition)
  return (
    <Card look={`worker tone-edge-${label.tone}`}>
      <header class="worker-head">
        <h2 title={id}>{id}</h2>
        <Badge {...label} />
      </header>
      <p>{text}</p>
      <WorkerFacts worker={worker} />
      <div class="foot">
        <div>
          {worker.holds !== null && <Holds holds={worker.holds} />}
          {worker.runningCount !== null && <Running worker={worker} count={worker.runningCount} />}
        </div>
        {worker.drains && worker.stoppingSinceMs === null && (
          <div class="actions">
            <ActButton icon="pause" needs="operator" look="small" label={`Drain ${id}`} onClick={drain}>
              Drain
            </ActButton>
          </div>
        )}
      </div>
    </Card>
  )
}

const DASH = '–'
const TYPES = 'Types'

/** What a worker of an earlier version or of another program does not say has a dash. */
function WorkerFacts({ worker }: { readonly worker: Worker }) {
  const { condition, lastBeatAtMs, lastJobAtMs, stoppingSinceMs, startedAtMs, types, host } = worker
  const { version, perSecond, memoryBytes, loopDelayMs } = worker
  const otherwise = condition === 'running' ? 'not known' : 'none yet'
  const facts: readonly (readonly [string, ComponentChildren] | null)[] = [
    ['Heartbeat', <Ago key="at" atMs={lastBeatAtMs} />],
    ['Started', <MaybeAgo key="at" atMs={startedAtMs} />],
    ['Last job', <MaybeAgo key="at" atMs={lastJobAtMs} otherwise={otherwise} />],
    stoppingSinceMs === null ? null : ['Stopping for', <Since key="at" atMs={stoppingSinceMs} />],
    ['Rate', perSecond === null ? DASH : rate(perSecond)],
    ['Memory', memoryBytes === null ? DASH : bytes(memoryBytes)],
    ['Loop delay', loopDelayMs === null ? DASH : `max ${duration(loopDelayMs)}`],
    ['Version', version ?? DASH],
    host === null ? null : ['Host', host],
    [TYPES, types.join(', ')],
  ]
  return (
    <dl class="facts compact">
      {facts.map(
        (fact) =>
          fact !== null && (
            <div key={fact[0]} class={fact[0] === TYPES ? 'full' : ''}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
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
