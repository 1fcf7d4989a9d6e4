export { type DlqAnswer, type DlqRefusal, dlqHttpStatus } from './answers.ts'
export { type ArchiveOptions, archiveLetters } from './archive.ts'
export { buildEnvelope, type Envelope, type Failure, originalKey, originalValue } from './envelope.ts'
export {
  DLT_HEADERS,
  type DltFacts,
  isForAnotherGroup,
  REPLAY_HEADERS,
  type ReplayFacts,
  readDltHeaders,
  readReplayHeaders,
} from './headers.ts'
export { readLetter, type TopicLetter, toDeadLetter } from './letter.ts'
export type { DeadLetterLog, DlqAudit, PartitionRange } from './log.ts'
export { readEnvelope } from './read-envelope.ts'
export {
  type Coordinates,
  dlqTopicOf,
  type LogRecord,
  type NewRecord,
  type RecordHeaders,
  toDlqTopic,
} from './record.ts'
export { DLQ_TOPIC_CONFIG, LETTER_AGE_MAX_MS, letterFate, STATES_TOPIC_CONFIG } from './retention.ts'
export { decodeState, encodeState } from './state-codec.ts'
export { type LetterState, StateBook, type StateRecord, type StateView } from './states.ts'
export {
  type DlqAddress,
  REPLAYS_MAX,
  type ReplayAllOptions,
  type ReplayAllProgress,
  TopicDesk,
  type TopicDeskOptions,
} from './topic-desk.ts'
export type { ListedLetter } from './walk.ts'
