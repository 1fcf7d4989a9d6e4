import type { Histogram } from 'prom-client'
import type { DeskAction } from '../../engine/dead-letters.ts'
import { findWithin } from '../observed-mill.ts'
import { eventInstrument, type Instrument, type MetricParts } from './instrument.ts'
import { METRIC_NAMES, PASS_BUCKETS } from './names.ts'

// Each counter starts at 0 with the worker: a series that starts at 1 hides its first event from `rate`.

/** Lost and expired leases, and the duration of reaper passes. */
export function measureLeases({ prom, registry, prefix, events, engine }: MetricParts): Instrument {
  const registers = [registry]
  const lost = new prom.Counter({
    name: prefix + METRIC_NAMES.leasesLost,
    help: 'Leases that a worker of this process lost while holding them',
    labelNames: ['type', 'reason'],
    registers,
  })
  const expired = new prom.Counter({
    name: prefix + METRIC_NAMES.leasesExpired,
    help: 'Expired leases recovered by this process, by the outcome for the job',
    labelNames: ['type', 'outcome'],
    registers,
  })
  let made: Histogram | null = null
  /** Not before a worker or keeper starts here, and not on an engine without a reaper: none there can be silent. */
  const pass = (): Histogram => {
    const [name, help] = [prefix + METRIC_NAMES.reaperPass, 'How long a reaper pass took']
    made ??= new prom.Histogram({ name, help, buckets: [...PASS_BUCKETS], registers })
    return made
  }
  return eventInstrument(
    events.attach({
      'keeper.started': ({ duties }) => void (duties.includes('reap') && pass()),
      'worker.started': ({ types }) => {
        if (engine.capabilities?.recovery !== 'engine') pass()
        for (const type of types) {
          lost.inc({ type, reason: 'expired' }, 0)
          for (const outcome of ['retry', 'dead']) expired.inc({ type, outcome }, 0)
        }
      },
      'lease.lost': ({ job, reason }) => lost.inc({ type: job.type, reason }),
      'lease.reaped': ({ job, outcome }) => expired.inc({ type: job.type, outcome: outcome.kind }),
      'reaper.pass': ({ durationMs }) => pass().observe(durationMs / 1_000),
    }),
  )
}

/** Dead letters replayed, discarded and deleted through desks of this mill, of any type that the store has. */
export function measureLetters({ prom, registry, prefix, events, engine, clock }: MetricParts): Instrument {
  const counter = (name: string, help: string) =>
    new prom.Counter({ name: prefix + name, help, labelNames: ['type'], registers: [registry] })
  const replayed = counter(METRIC_NAMES.jobsReplayed, 'Dead letters put back into the queue')
  const discarded = counter(METRIC_NAMES.jobsDiscarded, 'Dead letters discarded or deleted')
  const counterOf = {
    ...{ replay: replayed, discard: discarded, purge: discarded },
    // An erased job need not have been a dead letter.
    ...{ undo: null, erase: null },
  } satisfies Record<DeskAction, object | null>
  const know = (types: readonly string[]): void => {
    for (const type of types) for (const one of [replayed, discarded]) one.inc({ type }, 0)
  }
  const detach = events.attach({
    'worker.started': ({ types }) => know(types),
    'desk.acted': ({ action, type }) => counterOf[action]?.inc({ type }),
  })
  return {
    // A desk is often in a process that runs no worker.
    async collect() {
      const counts = await findWithin(clock, 'counting jobs', () => engine.counts())
      if (counts.ok) know(Object.keys(counts.value))
    },
    detach,
  }
}

/** Schedule ticks for which keepers of this mill enqueued nothing. */
export function measureSchedules({ prom, registry, prefix, events }: MetricParts): Instrument {
  const skipped = new prom.Counter({
    name: prefix + METRIC_NAMES.scheduleTicksSkipped,
    help: 'Schedule ticks for which no job was enqueued',
    labelNames: ['type', 'reason'],
    registers: [registry],
  })
  return eventInstrument(
    events.attach({
      'worker.started': ({ types }) => {
        for (const type of types) for (const reason of ['overlap', 'missed']) skipped.inc({ type, reason }, 0)
      },
      'schedule.skipped': ({ type }) => skipped.inc({ type, reason: 'overlap' }),
      'schedule.missed': ({ type, count }) => skipped.inc({ type, reason: 'missed' }, count),
    }),
  )
}
