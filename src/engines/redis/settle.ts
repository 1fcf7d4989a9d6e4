import type { Lease, Lost, LostReason, Outcome, Settlement } from '../../engine/outcome.ts'
import type { RedisDatabase } from './database.ts'
import { bullId, queueOf } from './keys.ts'
import { renewScript, reportScript, settleScript } from './lua/settle.ts'

/** All in one step; each is refused by itself where its token does not hold. */
export async function settleLeases(
  database: RedisDatabase,
  worker: string,
  settlements: readonly Settlement[],
): Promise<readonly Lost[]> {
  const args: (string | number)[] = [worker, settlements.length]
  for (const { lease, outcome } of settlements) {
    const { job, token, attempt } = lease
    const isLinked = job.key !== null || job.latestKey !== null || job.after !== null
    args.push(queueOf(job.type), bullId(job.type, job.id), token, attempt, ...outcomeArgs(outcome, isLinked))
  }
  return lostOf(
    settlements.map(({ lease }) => lease),
    await database.run(settleScript(), args),
  )
}

/** Kind, text, number, how many stay, whether it has ties, stack. */
function outcomeArgs(outcome: Outcome, isLinked: boolean): readonly (string | number)[] {
  const tied = isLinked ? '1' : '0'
  switch (outcome.kind) {
    case 'complete':
      return [outcome.kind, outcome.result, outcome.durationMs, outcome.keep ?? '', tied, '']
    case 'retry':
      return [outcome.kind, JSON.stringify(outcome.error), outcome.delayMs, '', tied, stackOf(outcome)]
    case 'dead':
      return [outcome.kind, JSON.stringify(outcome.error), 0, outcome.keep ?? '', tied, stackOf(outcome)]
    case 'release':
      return [outcome.kind, outcome.reason, outcome.delayMs, '', tied, '']
    default:
      return outcome satisfies never
  }
}

function stackOf({ error }: Extract<Outcome, { kind: 'retry' | 'dead' }>): string {
  return error.stack ?? `${error.name}: ${error.message}`
}

/** One call for all, whatever their types. */
export async function renewLeases(
  database: RedisDatabase,
  leases: readonly Lease[],
  leaseMs: number,
): Promise<readonly Lost[]> {
  const args = leases.flatMap(({ job, token }) => [queueOf(job.type), bullId(job.type, job.id), token])
  return lostOf(leases, await database.run(renewScript(), [leaseMs, leases.length, ...args]))
}

export async function reportProgress(database: RedisDatabase, { job, token }: Lease, progress: string): Promise<boolean> {
  const args = [queueOf(job.type), bullId(job.type, job.id), token, progress]
  return (await database.run(reportScript(), args)) === 1
}

function lostOf(leases: readonly Lease[], answer: unknown): readonly Lost[] {
  const answers: readonly unknown[] = Array.isArray(answer) ? answer : []
  return leases.flatMap((lease, index): readonly Lost[] => {
    const reason = answers[index]
    return reason === '' ? [] : [{ lease, reason: reasonOf(reason) }]
  })
}

function reasonOf(answer: unknown): LostReason {
  return answer === 'cancelled' ? 'cancelled' : 'expired'
}
