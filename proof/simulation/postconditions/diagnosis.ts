import type { Engine } from '../../../src/engine/engine.ts'
import { type NewJob, newJobId } from '../../../src/job/job.ts'
import type { Watch } from './watch.ts'

const TYPE = 'abandoned'
const LEASE_MS = 1_000
/** Recovery is overdue after this much more. */
const LATE_MS = 60_000

/** A diagnosis finds a lease that ran out in a store without a keeper. `advance` lets time pass. */
export async function judgeDiagnosis(
  engine: Engine,
  watch: Watch,
  advance: (ms: number) => Promise<void>,
): Promise<void> {
  if (engine.diagnose === undefined) return
  const findings = await engine.diagnose()
  watch.expect(findings.length > 0, null, () => 'a diagnosis says nothing at all')
  await engine.enqueue([abandoned(watch.clock.nowMs())])
  const consumer = await engine.consume({ types: [{ type: TYPE, leaseMs: LEASE_MS }], worker: 'simulation:1:gone' })
  await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
  await consumer.close()
  await advance(engine.capabilities.recoveryMaxMs + LEASE_MS + LATE_MS)
  const isFound = (await engine.diagnose()).some(({ severity }) => severity !== 'ok')
  watch.expect(isFound, null, () => 'a diagnosis finds everything in order, and a lease ran out long ago')
}

function abandoned(nowMs: number): NewJob {
  return {
    id: newJobId(nowMs),
    type: TYPE,
    payload: '{}',
    payloadVersion: 1,
    priority: 5,
    attempts: 3,
    delayMs: 0,
    runAtMs: null,
    key: null,
    latest: null,
    tenant: null,
    options: null,
    after: null,
  }
}
