/** Ends a round: nothing may be left that waits for an operator. */
import type { TypeCounts } from '../../src/engine/engine.ts'
import type { JobView } from '../../src/job/job.ts'
import { has } from './abilities.ts'
import { Client, type ClientParts } from './client.ts'
import { OVERTAKEN } from './perform.ts'
import { REFUSED_TYPE } from './refusals.ts'

/** How often the store is asked whether everything has finished. */
const LOOK_MS = 200
const PAGE = 500

export interface Finished {
  readonly isFinished: boolean
  /** What was left at the last look, by type: jobs that were ready, delayed or in progress. */
  readonly left: Readonly<Record<string, Pick<TypeCounts, 'ready' | 'delayed' | 'inProgress'>>>
}

/**
 * Resumes every type, removes every schedule, replays or discards the dead letters that other jobs wait for, and waits
 * until no job is ready, delayed or in progress, or until the signal aborts. Faults must have been healed.
 *
 * @example
 * const { isFinished, left } = await finish({ mill, abilities, recorder, clock, signal: AbortSignal.timeout(60_000) })
 */
export async function finish(parts: ClientParts): Promise<Finished> {
  const client = new Client(parts)
  const { mill, clock, signal } = client
  let left: Finished['left'] = {}
  while (!signal.aborted) {
    await letGo(client)
    const counts = await client.try('the counts', () => mill.counts())
    if (counts !== null) {
      left = unfinished(counts)
      const open = Object.values(left)
      if (open.length === 0) {
        judgeRefused(client, counts)
        return { isFinished: true, left }
      }
      if (open.every(({ ready, inProgress }) => ready + inProgress === 0)) await freeWaiting(client)
    }
    await clock.sleep(LOOK_MS, signal)
  }
  return { isFinished: false, left }
}

function unfinished(counts: Readonly<Record<string, TypeCounts>>): Finished['left'] {
  const open = Object.entries(counts).filter(([, { ready, delayed, inProgress }]) => ready + delayed + inProgress > 0)
  return Object.fromEntries(
    open.map(([type, { ready, delayed, inProgress }]) => [type, { ready, delayed, inProgress }]),
  )
}

/** What was refused is nowhere. */
function judgeRefused(client: Client, counts: Readonly<Record<string, TypeCounts>>): void {
  const stored = Object.values(counts[REFUSED_TYPE] ?? {}).reduce((sum, count) => sum + count, 0)
  client.seen('I10', null, stored === 0, `the store has ${stored} jobs of what was refused`)
}

async function letGo(client: Client): Promise<void> {
  const { mill, abilities } = client
  if (!has(abilities, 'records')) return
  for (const { type } of (await client.try('the paused types', () => mill.paused())) ?? []) {
    await client.try('a resume at the end', () => mill.resume(type, client.by('the end')))
  }
  for (const { name } of (await client.try('the schedules', () => mill.schedules.list())) ?? []) {
    await client.try('an unschedule at the end', () => mill.schedules.unschedule(name))
  }
}

/** A letter that others wait for is replayed once; one that dies again is discarded, and then they die too. */
async function freeWaiting(client: Client): Promise<void> {
  const { desk, abilities } = client
  if (desk === null || !abilities.capabilities.dependencies) return
  const wanted = new Set<string>()
  for (const { after } of await queuedJobs(client)) {
    if (after?.ifDead === 'wait') for (const id of after.ids) wanted.add(id)
  }
  const by = client.by('others wait for it')
  for (const id of wanted) {
    const letter = await client.try('a look at a letter', () => client.mill.job(id))
    if (letter?.state !== 'dead_letter') continue
    const replay = (): Promise<boolean> => desk.replay(id, by).then(() => true)
    const isReplayed = letter.replays === 0 && (await client.try('a replay at the end', replay, ...OVERTAKEN))
    if (isReplayed !== true) await client.try('a discard at the end', () => desk.discard({ ids: [id] }, by))
  }
}

async function queuedJobs(client: Client): Promise<readonly JobView[]> {
  const jobs: JobView[] = []
  for (;;) {
    const before = jobs.at(-1)?.id
    const filter = { state: 'queued', limit: PAGE, ...(before !== undefined && { before }) } as const
    const page = (await client.try('the queued jobs', () => client.mill.jobs(filter))) ?? []
    jobs.push(...page)
    if (page.length < PAGE) return jobs
  }
}
