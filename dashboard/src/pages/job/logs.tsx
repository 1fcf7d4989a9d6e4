import type { LogLine } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { nowMs } from '../../parts/clock.ts'
import { counted, exact, timeOfDay } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { Answered } from '../../parts/states.tsx'
import type { Tone } from '../../parts/words.ts'

const LIVE_MS = 1_500
const OVER_MS = 15_000

const TONES: Readonly<Record<LogLine['level'], Tone>> = { debug: 'quiet', info: 'run', warn: 'warn', error: 'bad' }

/** What the handler said, and says while the job runs. */
export function Logs({ id, isLive }: { readonly id: string; readonly isLive: boolean }) {
  const log = useAnswer('showJobLogs', { params: { id }, query: {} })
  useFresh(log.reload, { on: [], everyMs: isLive ? LIVE_MS : OVER_MS })
  return (
    <Card title="What it said">
      <Answered of={log}>{({ lines, dropped }) => <Lines lines={lines} dropped={dropped} />}</Answered>
    </Card>
  )
}

function Lines({ lines, dropped }: { readonly lines: readonly LogLine[]; readonly dropped: number }) {
  if (lines.length === 0) return <p class="quiet">Its handler has said nothing that is kept.</p>
  const attempts = new Set(lines.map(({ attempt }) => attempt))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keyboard users need to reach it
    <section class="log" tabIndex={0} aria-label="Log of the job">
      {dropped > 0 && <p class="quiet">{counted(dropped, 'older line')} no longer kept</p>}
      <ol>
        {lines.map((line) => (
          <Line key={line.seq} line={line} showsAttempt={attempts.size > 1} />
        ))}
      </ol>
    </section>
  )
}

function Line({ line, showsAttempt }: { readonly line: LogLine; readonly showsAttempt: boolean }) {
  const { atMs, level, attempt, worker, message, fields } = line
  return (
    <li class={`log-line tone-${TONES[level]}`}>
      <time dateTime={new Date(atMs).toISOString()} title={`${exact(atMs)}, ${worker}`}>
        {timeOfDay(atMs, nowMs())}
      </time>{' '}
      <span class="log-level">{level}</span> {showsAttempt && <span class="quiet">attempt {attempt}</span>}{' '}
      <span class="log-text">{message}</span>
      {fields !== null &&
        Object.entries(fields).map(([name, value]) => (
          <span key={name} class="quiet">
            {' '}
            {name}={typeof value === 'string' ? value : JSON.stringify(value)}
          </span>
        ))}
    </li>
  )
}
