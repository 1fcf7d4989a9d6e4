/**
 * Where queues are topics of a broker: how far consumer groups are behind, and the desk for dead letters that lie in topics
 * of their own. It belongs to the broker, not to one mill: groups of other programs are seen too.
 */
import type { Actor } from './dead-letters.ts'

/** How many records a group has yet to settle in a topic. */
export interface TopicLag {
  readonly group: string
  readonly topic: string
  readonly lag: number
}

/** A dead letter in a topic, in the format of the escrow workers. */
export interface TopicLetterView {
  readonly id: string
  readonly at: { readonly topic: string; readonly partition: number; readonly offset: bigint }
  readonly deadAtMs: number
  readonly envelope: object
}

export interface TopicAddress {
  readonly topic: string
  readonly partition?: number
  readonly offset: bigint
}

export type TopicAnswer =
  | { readonly done: true; readonly letter: TopicLetterView }
  | { readonly done: false; readonly why: string; readonly text: string }

export interface TopicLetters {
  list(
    topic: string,
    options?: { readonly state?: 'pending' | 'replayed' | 'discarded' | 'every'; readonly limit?: number },
  ): Promise<readonly { readonly letter: TopicLetterView; readonly state: { readonly state: string } }[]>
  /** With `dryRun` nothing is changed, and the answer says what would have been. */
  replay(
    address: TopicAddress,
    options: { readonly by: Actor; readonly force?: boolean; readonly dryRun?: boolean },
  ): Promise<TopicAnswer>
  discard(address: TopicAddress, options: { readonly by: Actor }): Promise<TopicAnswer>
  replayAll(
    topic: string,
    options: {
      readonly by: Actor
      readonly limit?: number
      readonly rate?: number
      readonly dryRun?: boolean
      readonly force?: boolean
      readonly signal?: AbortSignal
    },
  ): Promise<{
    readonly seen: number
    readonly replayed: number
    readonly refused: Readonly<Partial<Record<string, number>>>
  }>
}

export interface TopicsOfBroker {
  /** Of the groups that were named, on each topic that they read. */
  lags(): Promise<readonly TopicLag[]>
  /** Dead letters that nobody has resolved, by topic. */
  pendingByTopic(): Promise<readonly { readonly topic: string; readonly count: number }[]>
  readonly desk: TopicLetters
  close(): Promise<void>
}
