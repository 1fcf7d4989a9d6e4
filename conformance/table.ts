/** The one table of cases that every engine is held to. A meta-test sees to it that no file of `cases/` is missing. */
import type { Case, CaseFile, Level } from './case.ts'
import { steppedWorkers } from './cases/client/clock-steps.ts'
import { deferring } from './cases/client/deferring.ts'
import { flows } from './cases/client/dependencies.ts'
import { clientEnqueue } from './cases/client/enqueue.ts'
import { failures } from './cases/client/failures.ts'
import { handlers } from './cases/client/handlers.ts'
import { hostileFailures } from './cases/client/hostile.ts'
import { leaseKeeping } from './cases/client/leases.ts'
import { workerLimits } from './cases/client/limits.ts'
import { liveLimits } from './cases/client/live-limits.ts'
import { said } from './cases/client/logs.ts'
import { operating } from './cases/client/operating.ts'
import { payloads } from './cases/client/payloads.ts'
import { removing } from './cases/client/removing.ts'
import { keeping } from './cases/client/schedules.ts'
import { workerSlots } from './cases/client/slots.ts'
import { stopping } from './cases/client/stopping.ts'
import { ageingJobs } from './cases/port/ageing.ts'
import { attempts } from './cases/port/attempts.ts'
import { cancelling } from './cases/port/cancel.ts'
import { clockSteps } from './cases/port/clock-steps.ts'
import { closing } from './cases/port/closing.ts'
import { counting } from './cases/port/counts.ts'
import { burying } from './cases/port/dead-letters.ts'
import { dependent } from './cases/port/dependencies.ts'
import { bereft } from './cases/port/dependency-ends.ts'
import { deskActs } from './cases/port/desk.ts'
import { diagnosing } from './cases/port/diagnosis.ts'
import { endedStates } from './cases/port/ended-states.ts'
import { enqueueing } from './cases/port/enqueue.ts'
import { erasingCases } from './cases/port/erasing.ts'
import { exclusivity } from './cases/port/exclusivity.ts'
import { fencing } from './cases/port/fencing.ts'
import { histories } from './cases/port/history.ts'
import { inspecting } from './cases/port/inspector.ts'
import { idempotencyKeys } from './cases/port/keys.ts'
import { latestKeys } from './cases/port/latest.ts'
import { leading } from './cases/port/leadership.ts'
import { leases } from './cases/port/leases.ts'
import { rateLimits } from './cases/port/limits.ts'
import { keptLogs } from './cases/port/logs.ts'
import { lostClaims } from './cases/port/lost-claims.ts'
import { claimOrder } from './cases/port/order.ts'
import { pausedTypes } from './cases/port/pauses.ts'
import { presences } from './cases/port/presence.ts'
import { progress } from './cases/port/progress.ts'
import { recovering } from './cases/port/recovery.ts'
import { releasing } from './cases/port/release.ts'
import { removalOptions } from './cases/port/removal-options.ts'
import { retaining } from './cases/port/retention.ts'
import { retrying } from './cases/port/retry.ts'
import { scheduling } from './cases/port/schedules.ts'
import { searching } from './cases/port/searching.ts'
import { settlingBatches } from './cases/port/settle-batches.ts'
import { slotAccounts } from './cases/port/slot-accounts.ts'
import { slotLimits } from './cases/port/slots.ts'
import { transactionalEnqueue } from './cases/port/transactions.ts'
import { waiting } from './cases/port/waiting.ts'
import { wakingUp } from './cases/port/wake-up.ts'
import { crashes } from './cases/process/crashes.ts'
import { frozenProcesses } from './cases/process/frozen.ts'
import { signals } from './cases/process/signals.ts'

export const table: readonly CaseFile[] = [
  enqueueing,
  idempotencyKeys,
  latestKeys,
  claimOrder,
  ageingJobs,
  exclusivity,
  fencing,
  leases,
  clockSteps,
  recovering,
  lostClaims,
  attempts,
  retrying,
  burying,
  deskActs,
  erasingCases,
  retaining,
  removalOptions,
  releasing,
  cancelling,
  dependent,
  bereft,
  rateLimits,
  slotLimits,
  slotAccounts,
  progress,
  keptLogs,
  histories,
  inspecting,
  searching,
  endedStates,
  counting,
  diagnosing,
  waiting,
  wakingUp,
  closing,
  transactionalEnqueue,
  settlingBatches,
  leading,
  scheduling,
  presences,
  pausedTypes,
  clientEnqueue,
  handlers,
  said,
  failures,
  deferring,
  hostileFailures,
  removing,
  payloads,
  leaseKeeping,
  workerLimits,
  liveLimits,
  workerSlots,
  flows,
  stopping,
  keeping,
  steppedWorkers,
  operating,
  crashes,
  frozenProcesses,
  signals,
]

export function casesOf(level: Level): readonly Case[] {
  return table.filter((file) => file.level === level).flatMap((file) => file.cases)
}
