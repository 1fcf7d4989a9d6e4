/** What no client of a simulation asks for, asked at its end: each call goes through the postconditions. */
import type { Engine } from '../../../src/engine/engine.ts'
import { allJobs, type Watch } from './watch.ts'

const BY = { who: 'referee', reason: 'asked at the end' }
const TYPE = 'probe'

/** `engine` is watched; `advance` lets time pass. */
export async function probe(engine: Engine, watch: Watch, advance: (ms: number) => Promise<void>): Promise<void> {
  await askRefusals(engine)
  await askRecords(engine, advance)
  await askToLeave(engine, watch, advance)
}

/** Only a dead letter can be put back or discarded, and only a live job cancelled. */
async function askRefusals(engine: Engine): Promise<void> {
  const jobs = await allJobs(engine)
  for (const state of ['completed', 'cancelled', 'superseded', 'discarded', 'queued'] as const) {
    const job = jobs.find((view) => view.state === state)
    if (job === undefined) continue
    await engine.deadLetters?.requeue([job.id], BY)
    if (state !== 'discarded') await engine.deadLetters?.discard([job.id], BY)
    if (state !== 'queued') await engine.controls?.cancel(job.id, BY)
  }
  await engine.deadLetters?.note({
    ...BY,
    action: 'schedule-change',
    jobId: null,
    type: TYPE,
    subject: 'what it is about',
    before: { every: 1 },
    after: { every: 2 },
  })
}

/** A record is about itself alone, and is remembered when it has expired. */
async function askRecords({ records }: Engine, advance: (ms: number) => Promise<void>): Promise<void> {
  if (records === undefined) return
  const beats = ['probe\na', 'probe\nb'].map((name) => ({ name, body: '{"work":{}}' }))
  await records.put('worker', beats, 1_000)
  await records.remove('worker', ['probe\na'])
  await advance(1_000)
  await records.list('worker')
}

/** A claim that waits ends with its consumer. */
async function askToLeave(engine: Engine, watch: Watch, advance: (ms: number) => Promise<void>): Promise<void> {
  const consumer = await engine.consume({ types: [{ type: TYPE, leaseMs: 1_000 }], worker: 'simulation:1:probe' })
  let isOver = false
  const claim = consumer.claim({ max: 1, waitMs: 5_000, signal: new AbortController().signal })
  const ended = claim.then(() => {
    isOver = true
  })
  await consumer.close()
  await advance(0)
  watch.expect(isOver, null, () => 'a claim waits on although its consumer has left')
  await advance(5_000)
  await ended
}
