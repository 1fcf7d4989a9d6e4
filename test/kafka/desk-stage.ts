/** What the tests of dead letters on a broker are made of: a topic, its groups, and desks over it. */
import type { TestContext } from 'node:test'
import { type Mill, open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { type OpenTopicDesk, type OpenTopicDeskOptions, openTopicDesk } from '../../workloads/escrow/index.ts'
import { freshName, freshTopic, type KafkaServer } from '../servers/kafka.ts'
import { eventually, produce, urlOf } from './kafka-fixtures.ts'

export const ann = { who: 'ann', reason: 'the bank is back' }

export interface DeskStage {
  readonly topic: string
  readonly dlq: string
  readonly group: string
  /** Of a group. Default: the group of the desk. */
  url(group?: string): string
  openDesk(options?: OpenTopicDeskOptions): Promise<OpenTopicDesk>
  /** A worker whose handler is this. Default: one attempt. */
  work(
    run: (payload: unknown, id: string) => unknown,
    options?: { readonly group?: string; readonly attempts?: number },
  ): Promise<Mill>
  /** Writes plain records with these keys and lets all of them die. */
  bury(keys: readonly string[]): Promise<void>
}

/** Every stage has a desk of its own: states and audit entries of others are not seen. */
export async function stageDesk(t: TestContext, server: KafkaServer, partitions = 1): Promise<DeskStage> {
  const topic = await freshTopic(server, 'escrow.commands', partitions)
  const group = freshName('payout-executor')
  const desk = freshName('desk')
  const url = (of = group): string => urlOf(server, of, `&desk=${desk}`)
  const work: DeskStage['work'] = async (run, { group: of = group, attempts = 1 } = {}) => {
    const mill = await open(url(of))
    t.after(() => mill.close())
    const job = defineJob({
      type: topic,
      attempts,
      backoff: { kind: 'fixed', delay: 0 },
      run: ({ payload, job: { id } }) => run(payload, id),
    })
    await mill.work([job], { id: `${of}-1` })
    return mill
  }
  return {
    topic,
    dlq: `${topic}.dlq`,
    group,
    url,
    work,
    async openDesk(options) {
      const opened = await openTopicDesk(url(), options)
      t.after(() => opened.close())
      return opened
    },
    async bury(keys) {
      await produce(
        server,
        keys.map((key) => ({ topic, key, value: `{"key":"${key}"}` })),
      )
      const mill = await work(() => {
        throw new RangeError('no such deal')
      })
      // The first group of a new broker waits until the broker has made the topic in which commits are kept.
      await eventually(async () => (await mill.counts())[topic]?.dead === keys.length, 'the dead letters', 60_000)
      await mill.close()
    },
  }
}
