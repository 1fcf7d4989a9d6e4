import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { Badge } from '../../parts/badge.tsx'
import { whole } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { Answered } from '../../parts/states.tsx'
import { Ago, MaybeAgo } from '../../parts/time.tsx'
import { conditionLabel } from '../../parts/words.ts'
import { routeTo } from '../../router/route.ts'
import { FactList } from './fact-list.tsx'

const CAUSES_MAX = 5

/** The largest groups of its dead letters. */
export function CausesCard({ type }: { readonly type: string }) {
  const found = useAnswer('groupDeadLetters', { query: { type } })
  return (
    <Card title="Causes of failure" aside={<a href={routeTo('dead-letters', null, { type })}>All dead letters</a>}>
      <Answered of={found} rows={2}>
        {({ groups }) => (
          <FactList
            facts={groups.slice(0, CAUSES_MAX).map(({ fingerprint, count, error, newestAtMs }) => [
              whole(count),
              <span key={fingerprint}>
                <a href={routeTo('dead-letters', null, { type, fingerprint })}>{error}</a>{' '}
                <span class="quiet">
                  newest <Ago atMs={newestAtMs} />
                </span>
              </span>,
            ])}
          />
        )}
      </Answered>
    </Card>
  )
}

export function WorkersCard({ type }: { readonly type: string }) {
  const found = useAnswer('listWorkers', {})
  useFresh(found.reload, { on: ['overview'], atMostEveryMs: 5_000, everyMs: 10_000 })
  return (
    <Card title="Who works on it" aside={<a href={routeTo('workers')}>All workers</a>}>
      <Answered of={found} rows={2}>
        {({ workers }) => {
          const own = workers.filter(({ types }) => types.includes(type))
          if (own.length === 0) return <p class="quiet">No worker has said that it runs this type.</p>
          return (
            <ul class="running">
              {own.map(({ id, condition, running, concurrency }) => (
                <li key={id}>
                  {id} <Badge {...conditionLabel(condition)} />{' '}
                  <span class="quiet">
                    {running.filter((job) => job.type === type).length} of this type
                    {concurrency !== null && `, at most ${concurrency} at once`}
                  </span>
                </li>
              ))}
            </ul>
          )
        }}
      </Answered>
    </Card>
  )
}

export function SchedulesCard({ type }: { readonly type: string }) {
  const found = useAnswer('listSchedules', {})
  const own = (found.value?.schedules ?? []).filter((schedule) => schedule.type === type)
  if (own.length === 0) return null
  return (
    <Card title="Schedules" aside={<a href={routeTo('schedules')}>All schedules</a>}>
      <FactList
        facts={own.map(({ name, cron, tz, paused, nextAtMs }) => [
          name,
          <span key={name}>
            <code>{cron}</code> {tz}
            {paused ? (
              ', paused'
            ) : (
              <>
                , next <MaybeAgo atMs={nextAtMs} otherwise="never" />
              </>
            )}
          </span>,
        ])}
      />
    </Card>
  )
}
