/** What the processes of a round do, made from the seed of the round. */
import type { Recorder } from '../../proof/history/recorder.ts'
import { defineJob, type HandledJob, type Mill, type WorkerOptions } from '../../src/index.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import type { Part } from './part.ts'

const plain = defineJob({ type: 'plain', lease: '1s', attempts: 20, backoff: { kind: 'fixed', delay: '50ms' } })

export const transactionNames = { of: (_within: object): string => 'unnamed' }

export function workedJobs(_mill: Mill, _part: Part, recorder: Recorder): readonly HandledJob[] {
  return [
    plain.handledBy(async ({ job, signal }) => {
      const { id, attempt, token } = job
      recorder.note({ what: 'begin', id, attempt, token })
      await new Promise((resolve) => setTimeout(resolve, 10))
      recorder.note({ what: 'end', id, attempt, token, how: 'returned', wasAborted: signal.aborted })
    }),
  ]
}

export function workOptions({ engine }: Mill, _part: Part): WorkerOptions {
  const { recovery } = engine.capabilities
  return { concurrency: 20, signals: true, drain: '2s', poll: '200ms', ...(recovery === 'reaper' && { reap: '500ms' }) }
}

export interface Performing {
  readonly recorder: Recorder
  /** Aborts when the process is asked to stop. */
  readonly signal: AbortSignal
  onOperation(operation: number): void
}

export async function performAs(mill: Mill, part: Part, { signal, onOperation }: Performing): Promise<void> {
  const random = seededRandom(part.seed + (part.client ?? 0))
  const operations = Math.ceil(part.jobs / part.clients / 20)
  for (let index = part.from; index < operations && !signal.aborted; index += 1) {
    onOperation(index)
    const payloads = Array.from({ length: 20 }, () => ({}))
    await mill.enqueueMany(plain, payloads).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, random() * 200))
  }
}
