/** Carries out the operations of one client. */
import type { BulkOutcome } from '../../src/desk/bulk.ts'
import { sweepOnce } from '../../src/keeper/retention.ts'
import { Client, type ClientParts } from './client.ts'
import { enqueue, enqueueOne } from './enqueuing.ts'
import { numberOf } from './handlers.ts'
import type { Operation } from './operation.ts'
import { askMistake, askUnsupported } from './refusals.ts'

/** A client that was killed and started again goes on with the operation after the last one that it began. */
export interface PerformOptions {
  readonly from?: number
  onBegin?(index: number): void
}

/**
 * Performs operations one after the other until the signal aborts. It never rejects for what a fault may cause; what no
 * fault explains is written into the history.
 *
 * @example
 * for (const operations of program.clients) await perform(operations, { mill, abilities, recorder, clock, signal })
 */
export async function perform(
  operations: readonly Operation[],
  parts: ClientParts | Client,
  { from = 0, onBegin }: PerformOptions = {},
): Promise<void> {
  const client = parts instanceof Client ? parts : new Client(parts)
  for (const [index, operation] of operations.entries()) {
    if (index < from) continue
    if (client.signal.aborted) return
    onBegin?.(index)
    await performOne(client, operation)
  }
}

async function performOne(client: Client, operation: Operation): Promise<void> {
  const { mill, clock, signal } = client
  switch (operation.do) {
    case 'enqueue':
      return enqueue(client, operation)
    case 'transaction':
      return inTransaction(client, operation)
    case 'wait':
      return clock.sleep(operation.ms, signal)
    case 'cancel': {
      const receipt = client.receipts.get(operation.job)
      if (receipt !== undefined) await client.try('a cancel', () => mill.cancel(receipt.id, client.by('as planned')))
      return
    }
    case 'result':
      return awaitResult(client, operation)
    case 'pause':
    case 'resume': {
      const { do: act, type } = operation
      await client.try(`a ${act} of '${type}'`, () => mill[act](type, client.by('as planned')))
      return
    }
    case 'replay':
    case 'discard':
    case 'undo':
    case 'purge':
    case 'edit':
      return actAtDesk(client, operation)
    case 'schedule':
    case 'unschedule':
    case 'pause-schedule':
    case 'resume-schedule':
    case 'run-schedule':
      return changeSchedule(client, operation)
    case 'sweep': {
      const rule = { what: operation.what, type: operation.type, beforeMs: clock.nowMs() - operation.ageMs }
      const by = client.by('as planned')
      await client.try('a sweep', () => sweepOnce({ engine: mill.engine, clock }, [rule], { signal, by }))
      return
    }
    case 'unsupported':
      return askUnsupported(client, operation.ask)
    case 'mistake':
      return askMistake(client, operation.ask)
    default:
      operation satisfies never
  }
}

async function inTransaction(client: Client, operation: Operation & { readonly do: 'transaction' }): Promise<void> {
  const { recorder, transactions: own } = client
  if (own === undefined) return
  const transaction = client.nextTransaction()
  const note = (end: 'committing' | 'committed' | 'rolled-back'): void =>
    recorder.note({ what: 'transaction', transaction, end })
  // Errors of the user's own connection have no codes of ours.
  const open = await own.begin().catch(() => null)
  if (open === null) return
  own.names.give(open.within, transaction)
  let isWhole = true
  for (const job of operation.jobs) {
    const isDone = await client.try(
      'an enqueue in a transaction',
      () => enqueueOne(client, job, open.within),
      'ERR_JOB_UNKNOWN',
    )
    isWhole &&= isDone === true
  }
  if (operation.end === 'commit' && isWhole) {
    note('committing')
    await open.commit().then(
      () => note('committed'),
      () => {},
    )
    return
  }
  await open.rollBack().catch(() => {})
  note('rolled-back')
}

/** The result of a job is what its own handler returned. */
async function awaitResult(client: Client, operation: Operation & { readonly do: 'result' }): Promise<void> {
  const { mill, signal } = client
  const receipt = client.receipts.get(operation.job)
  if (receipt === undefined) return
  const wait = { timeout: operation.waitMs, signal }
  const result = await client.try(
    'a wait for a result',
    () => mill.result(receipt.id, wait),
    'ERR_JOB_DEAD',
    'ERR_JOB_ENDED',
    'ERR_JOB_UNKNOWN',
  )
  if (result === null || receipt.status === 'duplicate') return
  const isPromised = numberOf(result) === operation.job
  client.seen('results', receipt.id, isPromised, `the result of job ${operation.job} was ${JSON.stringify(result)}`)
}

type DeskOperation = Extract<Operation, { readonly do: 'replay' | 'discard' | 'undo' | 'purge' | 'edit' }>

/** Another client may have acted on the same letter meanwhile, or a worker may have run it already. */
export const OVERTAKEN = ['ERR_STATE_TRANSITION', 'ERR_JOB_UNKNOWN', 'ERR_DESK_REFUSED'] as const

async function actAtDesk(client: Client, operation: DeskOperation): Promise<void> {
  const { desk } = client
  if (desk === null) return
  const by = client.by(`${operation.do}, as planned`)
  const attempt = (make: () => Promise<unknown>): Promise<unknown> =>
    client.try(`the act '${operation.do}' at the desk`, make, ...OVERTAKEN)
  if (operation.do === 'undo') {
    for (const id of await discardedIds(client, operation.count)) await attempt(() => desk.undo(id, by))
    return
  }
  const count = operation.do === 'edit' ? 1 : operation.count
  const letters = (await client.try('a list of dead letters', () => desk.list({ limit: count }))) ?? []
  if (operation.do === 'edit') {
    for (const { job } of letters) {
      const payload = edited(job.type, job.payload, operation)
      if (payload !== null) await attempt(() => desk.replay(job.id, by, { payload }))
    }
    return
  }
  const ids = letters.map(({ job }) => job.id)
  const act = (some: readonly string[]): Promise<BulkOutcome> => {
    if (operation.do === 'replay') return desk.replayAll({ ids: some }, by)
    return operation.do === 'discard' ? desk.discard({ ids: some }, by) : desk.purge({ ids: some }, by)
  }
  if (operation.do === 'discard') client.discarded.push(...ids)
  for (const some of operation.how === 'at-once' ? [ids] : ids.map((id) => [id])) await attempt(() => act(some))
}

/** By every client where the store can list them, otherwise by this one. */
async function discardedIds(client: Client, count: number): Promise<readonly string[]> {
  if (!client.abilities.facets.includes('inspector')) return client.discarded.splice(-count)
  const { mill } = client
  const found = await client.try('a list of discarded jobs', () => mill.jobs({ state: 'discarded', limit: count }))
  return (found ?? []).map(({ id }) => id)
}

/** The payload with another plan; null for one that is no plan of ours. */
function edited(type: string, text: string, { behaviours }: Operation & { readonly do: 'edit' }): unknown {
  try {
    const { n }: { n?: unknown } = Object(JSON.parse(text))
    if (n === undefined) return null
    return type === 'versioned' ? { n, steps: behaviours } : { n, behaviours }
  } catch {
    return null
  }
}

type ScheduleOperation = Extract<Operation, { readonly name: string }>

async function changeSchedule(client: Client, operation: ScheduleOperation): Promise<void> {
  const { schedules } = client.mill
  const { name } = operation
  const change = (): Promise<unknown> => {
    switch (operation.do) {
      case 'schedule':
        return schedules.upsert(name, {
          type: client.definition('scheduled'),
          cron: `*/${operation.everySeconds} * * * * *`,
          missed: operation.missed,
          payload: { n: name, behaviours: [{ do: 'return', afterMs: 5 }] },
        })
      case 'unschedule':
        return schedules.unschedule(name)
      case 'pause-schedule':
        return schedules.pause(name)
      case 'resume-schedule':
        return schedules.resume(name)
      case 'run-schedule':
        return schedules.runNow(name)
      default:
        return operation satisfies never
    }
  }
  await client.try(`'${operation.do}'`, change, 'ERR_SCHEDULE_UNKNOWN')
}
