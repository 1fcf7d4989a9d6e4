import type { Lease, Lost, LostReason, Outcome, Settlement } from '../../engine/outcome.ts'
import { storableRecord } from '../../job/error-record.ts'
import type { ErrorRecord } from '../../job/job.ts'
import type { Keep } from '../../job/keep.ts'
import type { RedisDatabase } from './database.ts'
import { bullId, queueOf } from './keys.ts'
import { completeScript, renewScript, reportScript, settleScript } from './lua/settle.ts'

/** Each is refused by itself where its token does not hold. Those of one kind are one step. */
export async function settleLeases(
  database: RedisDatabase,
  worker: string,
  settlements: readonly Settlement[],
): Promise<readonly Lost[]> {
  const plain: Completion[] = []
  const others: Settlement[] = []
  for (const { lease, outcome } of settlements) {
    if (outcome.kind === 'complete' && !isTied(lease) && !outcome.keep) plain.push({ lease, outcome })
    else others.push({ lease, outcome })
  }
  const [completed, settled] = await Promise.all([
    plain.length === 0 ? { lost: [], tied: [] } : completePlain(database, plain),
    others.length === 0 ? [] : settleAny(database, worker, others),
  ])
  const late = completed.tied.length === 0 ? [] : await settleAny(database, worker, completed.tied)
  return [...completed.lost, ...settled, ...late]
}

interface Completion {
  readonly lease: Lease
  readonly outcome: Extract<Outcome, { kind: 'complete' }>
}

/** The hot path. `tied`: others come after these, which the plain script does not know how to tell. */
async function completePlain(
  database: RedisDatabase,
  done: readonly Completion[],
): Promise<{ readonly lost: readonly Lost[]; readonly tied: readonly Settlement[] }> {
  const args: (string | number)[] = [done.length]
  for (const { lease, outcome } of done) {
    const { job, token, attempt } = lease
    const removes = outcome.keep === 0 ? '1' : '0'
    args.push(queueOf(job.type), bullId(job.type, job.id), token, attempt, outcome.result, outcome.durationMs, removes)
  }
  const answer = await database.run(completeScript(), args)
  const answers: readonly unknown[] = Array.isArray(answer) ? answer : []
  const tied = done.filter((_, index) => answers[index] === 'tied')
  const told = answers.map((one) => (one === 'tied' ? '' : one))
  return {
    tied,
    lost: lostOf(
      done.map(({ lease }) => lease),
      told,
    ),
  }
}

function isTied({ job }: Lease): boolean {
  return job.key !== null || job.latestKey !== null || job.after !== null
}

async function settleAny(
  database: RedisDatabase,
  worker: string,
  settlements: readonly Settlement[],
): Promise<readonly Lost[]> {
  const args: (string | number)[] = [worker, settlements.length]
  for (const { lease, outcome } of settlements) {
    const { job, token, attempt } = lease
    args.push(queueOf(job.type), bullId(job.type, job.id), token, attempt, ...outcomeArgs(outcome, isTied(lease)))
  }
  return lostOf(
    settlements.map(({ lease }) => lease),
    await database.run(settleScript(), args),
  )
}

/** Kind, text, number, how many stay, whether that is the job's own number, whether it has ties, stack. */
function outcomeArgs(outcome: Outcome, isLinked: boolean): readonly (string | number)[] {
  const tied = isLinked ? '1' : '0'
  switch (outcome.kind) {
    case 'complete':
      return [outcome.kind, outcome.result, outcome.durationMs, ...keepArgs(outcome), tied, '']
    case 'retry':
      return [outcome.kind, textOf(outcome.error), outcome.delayMs, ...keepArgs({}), tied, stackOf(outcome)]
    case 'dead':
      return [outcome.kind, textOf(outcome.error), 0, ...keepArgs(outcome), tied, stackOf(outcome)]
    case 'release':
      return [outcome.kind, outcome.reason, outcome.delayMs, ...keepArgs({}), tied, '']
    default:
      return outcome satisfies never
  }
}

function keepArgs({ keep, keepIsOwn }: Keep): readonly (string | number)[] {
  return [keep ?? '', keepIsOwn === true ? '1' : '0']
}

function textOf(error: ErrorRecord): string {
  return JSON.stringify(storableRecord(error))
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

export async function reportProgress(
  database: RedisDatabase,
  { job, token }: Lease,
  progress: string,
): Promise<boolean> {
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
