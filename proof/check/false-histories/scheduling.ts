/** Ticks that are enqueued twice, early or not at all. */
import { encodeTime } from 'ulid'
import { digestOf } from '../../history/recorder.ts'
import { type FalseHistory, falsely } from './false-history.ts'
import type { Script } from './script.ts'

function fire(
  script: Script,
  tick: {
    readonly tickMs: number
    readonly revision: string
    readonly expected: string | null
    readonly missed?: string
    readonly nextAtMs?: number
    readonly ticks?: number
  },
): Script {
  const { tickMs, revision, expected, missed = 'one', ticks = 1 } = tick
  const plan = {
    type: 'plain',
    cron: '* * * * * *',
    tz: 'UTC',
    missed,
    overlap: 'allow',
    nextAtMs: tick.nextAtMs ?? tickMs + 1_000,
  }
  const jobs = Array.from({ length: ticks }, (_, index) => {
    const id = `${encodeTime(tickMs + index * 1_000, 10)}0000000000000000`
    return { id, type: 'plain', priority: 5, attempts: 3, digest: digestOf(`"${id}"`), payloadVersion: 1 }
  })
  const receipts = jobs.map(({ id }) => ({ id, status: 'enqueued' }) as const)
  script.call(
    { what: 'save', kind: 'schedule', name: 's', revision, expected, body: JSON.stringify(plan), jobs },
    { what: 'saved', receipts },
    { by: 'keeper' },
  )
  for (const job of jobs) script.store(job).cancel(job.id)
  return script
}

export const scheduling: readonly FalseHistory[] = [
  falsely(
    'two keepers fire one tick',
    ['schedules', /the run .* of a schedule was enqueued 2 times/],
    (script, isFalse) => {
      const tickMs = Math.floor(script.wallMs / 1_000) * 1_000
      fire(script, { tickMs, revision: 'r1', expected: null })
      fire(script, { tickMs: isFalse ? tickMs : tickMs - 1_000, revision: 'r2', expected: 'r1' })
      return script
    },
  ),
  falsely(
    'two changes from one revision succeed',
    ['schedules', /two changes of the schedule 's' from one revision succeeded/],
    (script, isFalse) => {
      const tickMs = Math.floor(script.wallMs / 1_000) * 1_000
      fire(script, { tickMs: tickMs - 3_000, revision: 'r1', expected: null })
      fire(script, { tickMs: tickMs - 2_000, revision: 'r2', expected: 'r1' })
      return fire(script, { tickMs: tickMs - 1_000, revision: 'r3', expected: isFalse ? 'r1' : 'r2' })
    },
  ),
  falsely('a tick is enqueued early', ['schedules', /enqueued its run .* \d+ ms before its tick/], (script, isFalse) =>
    fire(script, {
      tickMs: Math.floor(script.wallMs / 1_000) * 1_000 + (isFalse ? 5_000 : 0),
      revision: 'r1',
      expected: null,
    }),
  ),
  falsely(
    'missed ticks are made up for though the policy keeps one',
    ['schedules', /enqueued 2 runs at once, and its policy is 'skip'/],
    (script, isFalse) => {
      const tickMs = Math.floor(script.wallMs / 1_000) * 1_000 - 2_000
      return fire(script, { tickMs, ticks: 2, missed: isFalse ? 'skip' : 'all', revision: 'r1', expected: null })
    },
  ),
  falsely(
    'a missed tick is left out though the policy is all',
    ['schedules', /left out its tick of .*, and its policy is 'all'/],
    (script, isFalse) => {
      const tickMs = Math.floor(script.wallMs / 1_000) * 1_000 - 9_000
      fire(script, { tickMs, missed: 'all', revision: 'r1', expected: null })
      return fire(script, { tickMs: tickMs + (isFalse ? 2_000 : 1_000), missed: 'all', revision: 'r2', expected: 'r1' })
    },
  ),
  falsely(
    'a schedule whose policy is all goes on behind a tick that it never had',
    ['schedules', /left out its tick of .*, and its policy is 'all'/],
    (script, isFalse) => {
      const tickMs = Math.floor(script.wallMs / 1_000) * 1_000 - 9_000
      fire(script, { tickMs, missed: 'all', revision: 'r1', expected: null })
      const nextAtMs = tickMs + (isFalse ? 3_000 : 2_000)
      return fire(script, { tickMs: tickMs + 1_000, nextAtMs, missed: 'all', revision: 'r2', expected: 'r1' })
    },
  ),
]
