import { nowMs, useNow } from './clock.ts'
import { duration, exact, relative, timeOfDay } from './format.ts'

/** A time from now, with the exact one in its title. */
export function Ago({ atMs }: { readonly atMs: number }) {
  const now = useNow()
  return (
    <time dateTime={new Date(atMs).toISOString()} title={exact(atMs)}>
      {relative(atMs, now)}
    </time>
  )
}

export function Exact({ atMs }: { readonly atMs: number }) {
  return (
    <time dateTime={new Date(atMs).toISOString()} title={new Date(atMs).toISOString()}>
      {exact(atMs)}
    </time>
  )
}

/** The time since then. */
export function Since({ atMs }: { readonly atMs: number }) {
  const now = useNow()
  return <span title={`since ${exact(atMs)}`}>{duration(now - atMs)}</span>
}

export function MaybeAgo({ atMs, otherwise = '–' }: { readonly atMs: number | null; readonly otherwise?: string }) {
  return atMs === null ? <span class="quiet">{otherwise}</span> : <Ago atMs={atMs} />
}

/** With the distance that the server adds, which was right when it was written. */
const ISO = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?: \((?:in [^()]+|[^()]+ ago)\))?)/

/** The server's sentence, with its times in the browser's time zone, and how far they are from now. */
export function Timed({ text }: { readonly text: string }) {
  const parts = text.split(ISO)
  return <>{parts.map((part, index) => (index % 2 === 0 ? part : <Moment key={part} text={part} />))}</>
}

function Moment({ text }: { readonly text: string }) {
  const [iso = '', far] = text.split(' (')
  const atMs = Date.parse(iso)
  return (
    <>
      <time dateTime={iso} title={exact(atMs)}>
        {timeOfDay(atMs, nowMs())}
      </time>
      {far !== undefined && (
        <>
          {' '}
          (<Ago atMs={atMs} />)
        </>
      )}
    </>
  )
}
