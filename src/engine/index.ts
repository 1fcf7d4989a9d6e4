/** `millrace/engine`: what the author of an engine implements, receives and throws. */

export { ClosedError, EngineError, MillraceError, UnknownJobError, UnsupportedError } from '../errors.ts'
export type {
  ErrorRecord,
  JobEvent,
  JobView,
  NewJob,
  Predecessors,
  StoredJob,
  StoredOptions,
  Tenant,
} from '../job/job.ts'
export type { JobState } from '../job/states.ts'
export { type Clock, systemClock } from '../time/clock.ts'
export type { Capabilities } from './capabilities.ts'
export type {
  Actor,
  AuditEntry,
  AuditFilter,
  AuditNote,
  DeadLetter,
  DeadLetterFilter,
  DeadLetters,
  PayloadEdit,
} from './dead-letters.ts'
export type {
  ClaimRequest,
  Consumer,
  ConsumerListener,
  Controls,
  Counts,
  DiagnoseOptions,
  Engine,
  Finding,
  HeldPart,
  Inspector,
  JobFilter,
  KnownWorker,
  Lookup,
  Receipt,
  SubscribedType,
  Subscription,
  Transaction,
  TypeCounts,
} from './engine.ts'
export type { JobLogs, KeptLine, SaidLines } from './job-logs.ts'
export type { Lease, Lost, LostReason, NotApplied, Outcome, Settlement, Unstorable } from './outcome.ts'
export type { NewRecord, RecordKind, Records, SaveOptions, StoredRecord } from './records.ts'
export type { Finished, Retention, RetentionRule, Sweep, SweepStep } from './retention.ts'
