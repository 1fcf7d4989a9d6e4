/**
 * A member of a group in a process of its own, so that a test can stop or kill it. Arguments: the URL and the type.
 * Each line of standard input is a deed; what it did and heard is a line of JSON on standard output.
 */
import { createInterface } from 'node:readline'
import type { Lease, Outcome } from '../../src/engine/outcome.ts'
import { connect } from '../../src/engines/kafka/module.ts'
import { systemClock } from '../../src/time/clock.ts'

const [url = '', type = ''] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
const complete: Outcome = { kind: 'complete', result: 'null', durationMs: 1 }
const retry = (delayMs: number): Outcome => ({
  kind: 'retry',
  delayMs,
  error: { name: 'Error', code: null, message: 'boom', stack: null },
})

const engine = await connect(url, { clock: systemClock, migrate: true })
const consumer = await engine.consume({ types: [{ type, leaseMs: 600_000 }], worker: 'holder:1:1' })
consumer.listen({ onLost: ({ lease, reason }) => say({ event: 'lost', id: lease.job.id, reason }) })

let held: readonly Lease[] = []
say({ event: 'ready' })

/** Completes all but the key `bad`, which fails `failures` times; it then waits for `delayMs`. */
async function work(count: number, failures: number, delayMs: number): Promise<void> {
  for (let [completed, failed] = [0, 0]; completed < count || failed < failures; ) {
    for (const lease of await consumer.claim({ max: 50, waitMs: 500, signal: new AbortController().signal })) {
      const isBad = lease.job.key === 'bad'
      if (isBad) failed += 1
      else completed += 1
      const outcome = isBad ? retry(failed < failures ? 0 : delayMs) : complete
      await consumer.settle([{ lease, outcome }])
    }
  }
  await engine.counts()
  say({ event: 'worked', atMs: systemClock.nowMs() })
}

for await (const line of createInterface({ input: process.stdin })) {
  const [deed, ...rest] = line.split(' ')
  const numbers = rest.map(Number)
  if (deed === 'claim') {
    held = await consumer.claim({ max: 10, waitMs: 60_000, signal: new AbortController().signal })
    say({ event: 'claimed', ids: held.map(({ job }) => job.id), attempts: held.map(({ attempt }) => attempt) })
  } else if (deed === 'claim-and-die') {
    held = await consumer.claim({ max: 1, waitMs: 60_000, signal: new AbortController().signal })
    say({ event: 'claimed', ids: held.map(({ job }) => job.id), attempts: held.map(({ attempt }) => attempt) })
    process.kill(process.pid, 'SIGKILL')
  } else if (deed === 'block') {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, numbers[0] ?? 0)
  } else if (deed === 'settle') {
    const lost = await consumer.settle(held.map((lease) => ({ lease, outcome: complete })))
    say({ event: 'settled', lost: lost.map(({ reason }) => reason) })
  } else if (deed === 'leave') {
    await engine.close()
    say({ event: 'left' })
  } else if (deed === 'work') {
    await work(numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0)
  }
}
