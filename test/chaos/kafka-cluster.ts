/**
 * Three brokers with three copies of everything. Worker processes are killed, paused and sent away at random, and one
 * broker after the other is killed or stopped and comes back, so that leaders of partitions, the coordinator of the
 * group and the controller move. `node test/chaos/kafka-cluster.ts` runs it; `CHAOS_SEED` repeats a run.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type KafkaCluster, startKafkaCluster } from '../servers/kafka-cluster.ts'
import { printKafkaReport, runKafkaChaos, type StruckKafka } from './kafka.ts'

/** Long enough that the others have noticed, and lead in its place. */
const AWAY_MS = 8_000

function oneAfterTheOther({ url, brokers, end }: KafkaCluster): StruckKafka {
  let turn = 0
  const present = () => brokers[turn % brokers.length]
  return {
    url,
    end,
    stop: async () => present()?.stop(),
    kill: async () => present()?.kill(),
    async start() {
      await sleep(AWAY_MS)
      await present()?.start()
      turn += 1
    },
  }
}

if (import.meta.main) {
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`seed ${seed}`)
  const report = await runKafkaChaos(
    {
      ...{ records: 10_000, keys: 500, partitions: 6, processes: 3 },
      ...{ jobMsMax: 150, chaosMs: 60_000, finishMs: 180_000, strikeMs: 3_000 },
      restarts: ['kill', 'kill', 'kill', 'stop'],
      seed,
    },
    oneAfterTheOther(await startKafkaCluster()),
  )
  printKafkaReport(report)
}
