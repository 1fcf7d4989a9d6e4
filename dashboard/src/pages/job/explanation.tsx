import type { Explanation } from '../../api/shapes.ts'
import { JobId } from '../../parts/id.tsx'
import { Ago, Timed } from '../../parts/time.tsx'

/** Why it is running or not, in a sentence. */
export function Why({ explanation }: { readonly explanation: Explanation }) {
  const { text, also, untilMs, jobs } = explanation
  return (
    <div class="why">
      <p class="why-main">
        <Timed text={text} />
        {untilMs !== null && (
          <span class="quiet">
            {' '}
            (<Ago atMs={untilMs} />)
          </span>
        )}
      </p>
      {also.length > 0 && (
        <ul class="why-also">
          {also.map((line) => (
            <li key={line}>
              <Timed text={line} />
            </li>
          ))}
        </ul>
      )}
      {jobs.length > 0 && (
        <ul class="why-jobs">
          {jobs.map(({ id, type, state }) => (
            <li key={id}>
              {type} <JobId id={id} /> <span class="quiet">{state.replace('_', ' ')}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
