import { setTimeout as sleep } from 'node:timers/promises'
import { makePayload } from '../payload.ts'
import type { Scenario } from '../scenario.ts'

const SETTLE_MS = 1_000

export const idle: Scenario = {
  name: 'idle',
  title: 'An idle worker',
  explanation:
    'Processor time, user and system, of a process whose worker waits for work for ten seconds, in per cent of one core; the contenders wait at the same time. Rounds that differ by no more than 0.1 % agree: that is 10 ms in ten seconds. What a worker of Millrace does 15 seconds after its start and rarely then, retention and the history, is not in it. One job before and one after show that it does wait.',
  metrics: [{ key: 'cpu', title: 'CPU', unit: '%', grain: 0.1 }],
  targets: [
    {
      family: 'sqlite',
      text: 'an idle worker uses ≤ 0.2 % of one core',
      bound: '≤',
      limit: 0.2,
      unit: '%',
      measured: (figure) => figure('millrace-full', 'cpu'),
    },
    {
      family: 'postgres',
      text: 'an idle worker on Postgres uses ≤ 0.2 % of one core',
      bound: '≤',
      limit: 0.2,
      unit: '%',
      measured: (figure) => figure('millrace-postgres', 'cpu'),
    },
    {
      family: 'redis',
      text: 'an idle worker on Redis uses ≤ 0.1 % of one core',
      bound: '≤',
      limit: 0.1,
      unit: '%',
      measured: (figure) => figure('millrace-redis', 'cpu'),
    },
  ],
  together: true,
  roundsMax: 2,
  async measure({ contender, sizes }) {
    let arrived = Promise.withResolvers<number>()
    const faults: string[] = []
    const working = await contender.work({
      concurrency: sizes.concurrency,
      onJob: ({ n }) => arrived.resolve(n),
      onError: (error) => faults.push(`an error reached the user: ${String(error)}`),
    })
    const deliver = async (n: number): Promise<void> => {
      arrived = Promise.withResolvers<number>()
      await contender.enqueueOne(makePayload(n))
      const got = await Promise.race([arrived.promise, sleep(sizes.stallMs, 'nothing', { ref: false })])
      if (got !== n) faults.push(`job ${n} was awaited, ${got} arrived`)
    }
    await deliver(0)
    // The job's aftermath is not idleness.
    await sleep(Math.min(SETTLE_MS, sizes.idleMs))
    const before = process.cpuUsage()
    const startedMs = performance.now()
    await sleep(sizes.idleMs)
    const used = process.cpuUsage(before)
    const cpu = ((used.user + used.system) / 1_000 / (performance.now() - startedMs)) * 100
    await deliver(1)
    await working.stop()
    return { values: { cpu }, faults }
  },
}
