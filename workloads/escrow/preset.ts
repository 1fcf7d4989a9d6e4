/** The seven workers for `--preset escrow`. Their handlers only record what they would have done. */
import type { OpenPreset, Preset, PresetOptions } from '../../src/cli/extensions.ts'
import { KafkaEngine } from '../../src/engines/kafka/index.ts'
import { OptionError } from '../../src/errors.ts'
import { type AnyJob, defineJob, type Mill } from '../../src/index.ts'
import { redactUrl } from '../../src/job/error-record.ts'
import { ESCROW_TOPICS, ESCROW_WORKERS, type EscrowWorker } from './topology.ts'

/** What each worker does, and the `command` of its records. A record without a command is for all workers that read it. */
const DEEDS: Readonly<Record<string, { readonly command: string; readonly did: string }>> = {
  'ton-deposit-watcher': { command: 'watch-deposit', did: 'looked for the deposit' },
  'payout-executor': { command: 'payout', did: 'paid out' },
  'refund-executor': { command: 'refund', did: 'refunded' },
  'deal-timeout-worker': { command: 'time-out', did: 'ended the deal' },
  'post-scheduler': { command: 'schedule-post', did: 'scheduled the post' },
  'delivery-verifier': { command: 'verify-delivery', did: 'verified the delivery' },
  'reconciliation-worker': { command: 'reconcile', did: 'reconciled' },
}

export const preset: Preset = {
  takes: ['record', 'instance'],

  async open({ engine, record, instance }) {
    return {
      workers: ESCROW_WORKERS.map((worker) => ({
        id: `${worker.worker}-${instance}`,
        name: worker.worker,
        engine: inGroup(engine, worker.group),
        jobs: [jobOf(worker, record)],
      })),
      prepare: createTopics,
      watched: {
        groups: ESCROW_WORKERS.map(({ group }) => group),
        workers: ESCROW_WORKERS.map(({ worker }) => worker),
        topics: ESCROW_TOPICS,
      },
      examples: examplesFor(engine),
    }
  },
}

/** All six topics and those of their dead letters. */
async function createTopics({ engine }: Mill): Promise<void> {
  if (!(engine instanceof KafkaEngine)) throw notKafka(engine.name)
  await engine.ensureTopics(ESCROW_TOPICS.map(({ topic }) => topic))
}

/** They are printed, so a password is left out. */
function examplesFor(engine: string): OpenPreset['examples'] {
  const send = (payload: string, more = ''): string =>
    `millrace enqueue escrow.commands '${payload}' --key deal_1${more} --engine '${redactUrl(engine)}'`
  return [
    [send('{"command":"payout","amount":100.5}'), 'the payout executor acts, the other two pass it over'],
    [send('{"command":"refund","fail":"no such deal"}', ' --attempts 2'), 'a retry after 1 s, then a dead letter'],
    [
      `millrace dead list --engine '${redactUrl(inGroup(engine, 'refund-executor'))}'`,
      'the dead letters of the refund executor',
    ],
  ]
}

function jobOf({ worker, title, topic, policy }: EscrowWorker, record: PresetOptions['record']): AnyJob {
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
      record({ ...deed, payload })
      log.info(`${title}: ${deed.did}`, { key, attempt })
      if (failure !== undefined) throw new Error(String(failure))
      return deed.did
    },
  })
}

function fieldOf(payload: unknown, name: string): unknown {
  return typeof payload === 'object' && payload !== null ? Reflect.get(payload, name) : undefined
}

/** Each worker needs its own group, because workers that share a topic all read all of it. */
function inGroup(engine: string, group: string): string {
  if (!/^kafkas?:/.test(engine)) throw notKafka(engine.split(':')[0] ?? '')
  const parameters = new URLSearchParams(engine.split('?')[1])
  if (parameters.has('group'))
    throw new OptionError(`each worker of the preset has its own group; leave out 'group' in the engine's URL`)
  if (parameters.has('prefix'))
    throw new OptionError(`the topics of the preset have names of their own; leave out 'prefix' in the engine's URL`)
  return `${engine}${parameters.size === 0 ? '?' : '&'}group=${encodeURIComponent(group)}`
}

function notKafka(engine: string): OptionError {
  return new OptionError(`the preset 'escrow' runs on Kafka, not on ${engine}; add --engine kafka://host:9092`)
}
