import type { EventName, Events, MillEvents } from '../events.ts'
import type { Log } from '../job/definition.ts'

/** A line that the mill, its workers or a handler logged. */
export interface LogLine {
  readonly level: keyof Log
  readonly text: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** An event with its name: `events.filter((event) => event.name === 'job.settled')` narrows what it carries. */
export type CapturedEvent = {
  [Name in EventName]: { readonly name: Name; readonly event: MillEvents[Name] }
}[EventName]

/** Complete by its type: a new event that is missing here does not compile. */
const NAMES = {
  'job.enqueued': true,
  'job.claimed': true,
  'job.started': true,
  'job.progress': true,
  'job.settled': true,
  'job.cancelled': true,
  'lease.lost': true,
  'lease.reaped': true,
  'worker.started': true,
  'worker.paused': true,
  'worker.limited': true,
  'worker.stopping': true,
  'worker.overdue': true,
  'worker.stopped': true,
  'worker.error': true,
  'clock.stepped': true,
  'hook.error': true,
  'reaper.pass': true,
  'keeper.started': true,
  'keeper.leading': true,
  'keeper.waiting': true,
  'keeper.stopped': true,
  'keeper.error': true,
  'schedule.registered': true,
  'schedule.fired': true,
  'schedule.skipped': true,
  'schedule.missed': true,
  'schedule.changed': true,
  'retention.pass': true,
  'desk.acted': true,
  'alert.firing': true,
  'alert.resolved': true,
} satisfies Record<EventName, true>

/** Keeps every line in `lines`. */
export function capturingLog(lines: LogLine[]): Log {
  const write =
    (level: keyof Log): Log[keyof Log] =>
    (text, fields) =>
      void lines.push({ level, text, fields: { ...fields } })
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** Keeps every event in `captured`, in the order in which they were told. */
export function captureEvents(events: Events, captured: CapturedEvent[]): void {
  // The keys of the table above are the names of the events, and each is listened to with its own.
  for (const name of Object.keys(NAMES) as EventName[]) {
    events.on(name, (event) => void captured.push({ name, event } as CapturedEvent))
  }
}
