export type { OutboxSize } from '../engine/outbox.ts'
export { type OpenedOutbox, type OutboxOptions, openOutbox } from './open-outbox.ts'
