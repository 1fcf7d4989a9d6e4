/** How a client enqueues planned jobs. */
import type { EnqueueWithinOptions } from '../../src/client/options.ts'
import { prepareJobs } from '../../src/client/prepare.ts'
import type { Receipt, Transaction } from '../../src/engine/engine.ts'
import { type EnqueueOptions, PAYLOAD_BYTES_MAX_DEFAULT } from '../../src/job/options.ts'
import type { Client } from './client.ts'
import type { Payload } from './definitions.ts'
import type { Operation, PlannedJob } from './operation.ts'

/** How often an enqueue whose answer was an error is asked for again, and how soon. */
const REPEATS = 4
const AGAIN_MS = 100

export async function enqueue(client: Client, { jobs, how }: Operation & { readonly do: 'enqueue' }): Promise<void> {
  const [first] = jobs
  if (first === undefined) return
  switch (how) {
    case 'one-by-one':
      for (const job of jobs) await persistently(client, job, () => enqueueOne(client, job))
      return
    case 'many':
      await persistently(client, first, () => enqueueMany(client, jobs))
      return
    case 'flow':
      await persistently(client, first, () => enqueueFlow(client, jobs))
      return
    case 'repeat':
      for (const job of jobs) await enqueueTwice(client, job)
      return
    default:
      how satisfies never
  }
}

/**
 * As real clients do it: half of them ask again after an error, not knowing whether the first call was carried out, and
 * half leave it at that. A predecessor that was removed meanwhile is unknown, which refuses the whole call.
 */
async function persistently(client: Client, { n, type }: PlannedJob, make: () => Promise<boolean>): Promise<void> {
  const most = n % 2 === 0 ? 1 : REPEATS
  for (let time = 1; time <= most && !client.signal.aborted; time += 1) {
    const isDone = await client.try(`an enqueue of '${type}'`, make, 'ERR_JOB_UNKNOWN')
    if (isDone === true) return
    if (time < most) await client.clock.sleep(AGAIN_MS * time, client.signal)
  }
}

export async function enqueueOne(client: Client, job: PlannedJob, within?: Transaction): Promise<boolean> {
  const options: EnqueueWithinOptions = { ...optionsOf(client, job), ...(within !== undefined && { within }) }
  const receipt = await client.mill.enqueue(client.definition(job.type, job.version), payloadOf(job), options)
  remember(client, job, receipt)
  return true
}

async function enqueueMany(client: Client, jobs: readonly PlannedJob[]): Promise<boolean> {
  const [first] = jobs
  if (first === undefined) return true
  const { key: _, latest: __, ...options } = optionsOf(client, first)
  const alike = jobs.filter(({ type, version }) => type === first.type && version === first.version)
  const definition = client.definition(first.type, first.version)
  const receipts = await client.mill.enqueueMany(definition, alike.map(payloadOf), options)
  for (const [index, job] of alike.entries()) remember(client, job, receipts[index])
  return true
}

async function enqueueFlow(client: Client, jobs: readonly PlannedJob[]): Promise<boolean> {
  const numbers = new Set(jobs.map(({ n }) => n))
  const steps = jobs.map((job) => {
    const inside = (job.after ?? []).filter((n) => numbers.has(n)).map(stepName)
    const { after = [], ifDead: _, ...options } = optionsOf(client, job)
    const all = [...inside, ...(Array.isArray(after) ? after : [after]).map((id) => ({ id }))]
    const waits = all.length === 0 ? {} : { after: all, ...(job.ifDead !== undefined && { ifDead: job.ifDead }) }
    const step = { job: client.definition(job.type, job.version), payload: payloadOf(job), ...options, ...waits }
    return [stepName(job.n), step] as const
  })
  const receipts: Readonly<Record<string, Receipt>> = await client.mill.enqueueFlow(Object.fromEntries(steps))
  for (const job of jobs) remember(client, job, receipts[stepName(job.n)])
  return true
}

/**
 * The same job under the same id, twice on purpose: through the port, because the client gives every enqueue a new id.
 * The outbox repeats like this.
 */
async function enqueueTwice(client: Client, job: PlannedJob): Promise<void> {
  const { mill, clock, signal } = client
  const preparation = { engine: mill.engine, nowMs: clock.nowMs(), payloadBytesMax: PAYLOAD_BYTES_MAX_DEFAULT }
  const definition = client.definition(job.type, job.version)
  const prepare = () => prepareJobs(preparation, definition, [payloadOf(job)], optionsOf(client, job))
  const prepared = await client.try('the preparation of a repeated enqueue', prepare)
  if (prepared === null) return
  let done = 0
  for (let time = 0; done < 2 && time < REPEATS && !signal.aborted; time += 1) {
    const receipts = await client.try('a repeated enqueue', () => mill.engine.enqueue(prepared), 'ERR_JOB_UNKNOWN')
    if (receipts === null) await clock.sleep(AGAIN_MS, signal)
    else done += 1
    remember(client, job, receipts?.[0])
  }
}

function stepName(n: number): string {
  return `step-${n}`
}

function remember(client: Client, { n }: PlannedJob, receipt: Receipt | undefined): void {
  if (receipt !== undefined && receipt.status !== 'stale' && !client.receipts.has(n)) client.receipts.set(n, receipt)
}

export function payloadOf({ n, type, version, behaviours, extra }: PlannedJob): Payload {
  const more = extra === undefined ? {} : { extra: 'ä'.repeat(extra) }
  const isNew = type === 'versioned' && version === 2
  return isNew ? { n, steps: behaviours, ...more } : { n, behaviours, ...more }
}

function optionsOf(client: Client, job: PlannedJob): EnqueueOptions {
  const { priority, delayMs, atMs, attempts, backoff, timeoutMs, key, latest, tenant } = job
  const { removeOnComplete, removeOnFail, ifDead } = job
  const after = (job.after ?? []).flatMap((n) => client.receipts.get(n)?.id ?? [])
  return {
    ...(priority !== undefined && { priority }),
    ...(delayMs !== undefined && { delay: delayMs }),
    ...(atMs !== undefined && { at: new Date(client.clock.nowMs() + atMs) }),
    ...(attempts !== undefined && { attempts }),
    ...(backoff !== undefined && { backoff }),
    ...(timeoutMs !== undefined && { timeout: timeoutMs }),
    ...(key !== undefined && { key }),
    ...(latest !== undefined && { latest: latestOf(latest) }),
    ...(tenant !== undefined && { tenant }),
    ...(removeOnComplete !== undefined && { removeOnComplete }),
    ...(removeOnFail !== undefined && { removeOnFail }),
    ...(after.length > 0 && { after, ...(ifDead !== undefined && { ifDead }) }),
  }
}

function latestOf({ key, seq }: NonNullable<PlannedJob['latest']>): NonNullable<EnqueueOptions['latest']> {
  return seq === undefined ? key : { key, seq }
}
