/** Asks for what must be refused, and writes down whether it was (I10). Nothing of it may reach the store. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type ErrorCode, fieldOf, isMillraceError } from '../../src/errors.ts'
import { defineJob } from '../../src/job/definition.ts'
import type { EnqueueOptions } from '../../src/job/options.ts'
import type { Client } from './client.ts'
import type { Mistake, Unsupported } from './operation.ts'

/** No worker runs it, so a job of it that was stored by mistake stays where everybody sees it. */
export const REFUSED_TYPE = 'refused'

const DAY_MS = 86_400_000

/** A schema that no payload fits. */
const nothing: StandardSchemaV1<null> = {
  '~standard': { version: 1, vendor: 'millrace', validate: () => ({ issues: [{ message: 'nothing fits' }] }) },
}

export async function askUnsupported(client: Client, ask: Unsupported): Promise<void> {
  await expectRefusal(client, `the unsupported '${ask}'`, ['ERR_UNSUPPORTED'], () => unsupported(client, ask))
}

export async function askMistake(client: Client, ask: Mistake): Promise<void> {
  const codes: readonly ErrorCode[] = ['ERR_OPTION_INVALID', 'ERR_PAYLOAD_INVALID', 'ERR_PAYLOAD_NOT_JSON']
  await expectRefusal(client, `the mistake '${ask}'`, codes, () => mistaken(client, ask))
}

async function expectRefusal(
  client: Client,
  what: string,
  codes: readonly ErrorCode[],
  ask: () => Promise<unknown>,
): Promise<void> {
  try {
    await ask()
    client.seen('I10', null, false, `${what} was not refused`)
  } catch (error) {
    const isRefused = isMillraceError(error, ...codes)
    // A closed mill and a signal say nothing about the refusal.
    if (!isRefused && (client.signal.aborted || isMillraceError(error, 'ERR_CLOSED'))) return
    client.seen('I10', null, isRefused, `${what} was answered with ${String(fieldOf(error, 'code'))}`)
  }
}

function unsupported(client: Client, ask: Unsupported): Promise<unknown> {
  const { mill, abilities } = client
  const { enqueueDelayMaxMs, retryDelayMaxMs } = abilities.capabilities
  const job = defineJob({ type: REFUSED_TYPE })
  const enqueue = (options: EnqueueOptions): Promise<unknown> => mill.enqueue(job, null, options)
  switch (ask) {
    case 'delay':
      return enqueue({ delay: 1_000 })
    case 'long-delay':
      return enqueue({ delay: enqueueDelayMaxMs + 1 })
    case 'long-backoff':
      return enqueue({ backoff: { kind: 'fixed', delay: retryDelayMaxMs + 1 } })
    case 'priority':
      return enqueue({ priority: 1 })
    case 'key':
      return enqueue({ key: 'refused' })
    case 'latest':
      return enqueue({ latest: 'refused' })
    case 'after':
      return enqueue({ after: 'some-other-job' })
    case 'flow':
      return mill.enqueueFlow({ one: { job }, two: { job, after: 'one' } })
    case 'transaction':
      return mill.enqueue(job, null, { within: {} })
    case 'removal':
      return enqueue({ removeOnComplete: true })
    case 'limit':
      return mill.enqueue(defineJob({ type: REFUSED_TYPE, limit: { max: 1, per: '1s' } }))
    case 'slots':
      return mill.enqueue(defineJob({ type: REFUSED_TYPE, concurrency: { max: 1 } }))
    case 'schedule':
      return mill.schedules.upsert(REFUSED_TYPE, { type: job, cron: '* * * * *' })
    case 'pause':
      return mill.pause(REFUSED_TYPE)
    case 'cancel':
      return mill.cancel('some-job')
    case 'result':
      return mill.result('some-job', { timeout: DAY_MS })
    default:
      return ask satisfies never
  }
}

function mistaken({ mill }: Client, ask: Mistake): Promise<unknown> {
  const job = defineJob({ type: REFUSED_TYPE })
  const enqueue = (options: EnqueueOptions): Promise<unknown> => mill.enqueue(job, null, options)
  switch (ask) {
    case 'priority':
      return enqueue({ priority: 11 })
    case 'attempts':
      return enqueue({ attempts: 0 })
    case 'delay-and-at':
      return enqueue({ delay: 1, at: new Date(0) })
    case 'key-and-latest':
      return enqueue({ key: 'refused', latest: 'refused' })
    case 'unknown-option': {
      const misspelt: object = { prioritty: 1 }
      return enqueue(misspelt)
    }
    case 'bad-payload':
      return mill.enqueue(defineJob({ type: REFUSED_TYPE, payload: nothing }), null)
    case 'payload-not-json':
      return mill.enqueue(job, 1n)
    default:
      return ask satisfies never
  }
}
