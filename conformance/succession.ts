/** What the cases of dependencies are made of. */
import assert from 'node:assert/strict'
import type { Consumer } from '../src/engine/engine.ts'
import type { Outcome } from '../src/engine/outcome.ts'
import type { NewJob, Predecessors } from '../src/job/job.ts'
import { idsOf, type Stage } from './stage.ts'

export function after(ids: readonly string[], ifDead: Predecessors['ifDead'] = 'wait'): Pick<NewJob, 'after'> {
  return { after: { ids, ifDead } }
}

/** Everything that can be claimed now, by id. */
export async function claimable(stage: Stage, consumer: Consumer): Promise<readonly string[]> {
  return [...idsOf(await stage.take(consumer, 20))].sort()
}

/** Takes the one claimable job, which must be this one, and settles it. */
export async function settleJob(stage: Stage, consumer: Consumer, id: string, outcome: Outcome): Promise<void> {
  const lease = await stage.one(consumer)
  assert.equal(lease.job.id, id, 'another job was handed out')
  await stage.settle(consumer, lease, outcome)
}

/** Three jobs, one for each policy, that come after one. */
export async function threeAfter(stage: Stage, first: string): Promise<Record<Predecessors['ifDead'], string>> {
  const ids = { wait: '', run: '', die: '' }
  for (const ifDead of ['wait', 'run', 'die'] as const) ids[ifDead] = (await stage.put(after([first], ifDead))).id
  return ids
}
