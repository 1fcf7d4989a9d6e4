/** Document D's seven workers with handlers that only note what they would have done, for `millrace start --preset escrow`. */
import { KafkaEngine } from '../../src/engines/kafka/index.ts'
import { OptionError } from '../../src/errors.ts'
import { type AnyJob, defineJob, type Mill } from '../../src/index.ts'
import { ESCROW_TOPICS, ESCROW_WORKERS, type EscrowWorker, escrowLagLimits } from './topology.ts'

type Note = (deed: Readonly<Record<string, unknown>>) => void

/** What each does, and the `command` of a record that is meant for it; a record without one is for all that read it. */
const DEEDS: Readonly<Record<string, { readonly command: string; readonly did: string }>> = {
  'ton-deposit-watcher': { command: 'watch-deposit', did: 'looked for the deposit' },
  'payout-executor': { command: 'payout', did: 'paid out' },
  'refund-executor': { command: 'refund', did: 'refunded' },
  'deal-timeout-worker': { command: 'time-out', did: 'ended the deal' },
  'post-scheduler': { command: 'schedule-post', did: 'scheduled the post' },
  'delivery-verifier': { command: 'verify-delivery', did: 'verified the delivery' },
  'reconciliation-worker': { command: 'reconcile', did: 'reconciled' },
}

export const preset = {
  workers(engine: string, note: Note) {
    return ESCROW_WORKERS.map((worker) => ({
      id: `${worker.worker}-1`,
      engine: inGroup(engine, worker.group),
      jobs: [jobOf(worker, note)],
    }))
  },

  /** All six topics, also those that no worker reads, and their dead letters. */
  async prepare({ engine }: Mill): Promise<void> {
    if (!(engine instanceof KafkaEngine)) throw notKafka(engine.name)
    await engine.ensureTopics(ESCROW_TOPICS.map(({ topic }) => topic))
  },

  watched: { groups: ESCROW_WORKERS.map(({ group }) => group), lagLimits: escrowLagLimits },

  examples(engine: string): readonly (readonly [string, string])[] {
    const send = (payload: string, more = ''): string =>
      `millrace enqueue escrow.commands '${payload}' --key deal_1${more} --engine '${engine}'`
    return [
      [send('{"command":"payout","amount":100.5}'), 'the payout executor acts, the other two pass it over'],
      [send('{"command":"refund","fail":"no such deal"}', ' --attempts 2'), 'a retry after 1 s, then a dead letter'],
      [
        `millrace dead list --engine '${inGroup(engine, 'refund-executor')}'`,
        'the dead letters of the refund executor',
      ],
    ]
  },
}

function jobOf({ worker, title, topic, policy }: EscrowWorker, note: Note): AnyJob {
  const { command, did } = DEEDS[worker] ?? { command: worker, did: 'was called' }
  return defineJob({
    type: topic,
    ...policy,
    run: ({ payload, job: { id, key, attempt }, log }) => {
      const wanted = fieldOf(payload, 'command')
      const isMine = wanted === undefined || wanted === command
      const failure = isMine ? fieldOf(payload, 'fail') : undefined
      const outcome = isMine ? did : 'passed it over'
      const deed = { worker, topic, key, id, attempt, did: failure === undefined ? outcome : `failed: ${failure}` }
      note({ ...deed, payload })
      log.info(`${title}: ${deed.did}`, { key, attempt })
      if (failure !== undefined) throw new Error(String(failure))
      return deed.did
    },
  })
}

function fieldOf(payload: unknown, name: string): unknown {
  return typeof payload === 'object' && payload !== null ? Reflect.get(payload, name) : undefined
}

/** Workers that share a topic read all of it, each for itself. */
function inGroup(engine: string, group: string): string {
  if (!engine.startsWith('kafka:')) throw notKafka(engine.split(':')[0] ?? '')
  const [base = '', query = ''] = engine.split('?')
  const parameters = new URLSearchParams(query)
  if (parameters.has('group'))
    throw new OptionError(`each worker of the preset is a group of its own; leave out 'group' of the engine's URL`)
  parameters.set('group', group)
  // As people write it: a URL may have commas and colons here.
  return `${base}?${decodeURIComponent(parameters.toString())}`
}

function notKafka(engine: string): OptionError {
  return new OptionError(`the preset 'escrow' runs on Kafka, not on ${engine}; add --engine kafka://host:9092`)
}
