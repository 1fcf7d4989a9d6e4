/** What operators see of a broker whose queues are topics. It covers the groups of other programs too. */

/** How many records a group has yet to settle in a topic. */
export interface TopicLag {
  readonly group: string
  readonly topic: string
  readonly lag: number
}

export interface TopicsOfBroker {
  /** Of the named groups, on each topic that they read. */
  lags(): Promise<readonly TopicLag[]>
  /** Unresolved dead letters, by the topic that holds them. */
  pendingByTopic(): Promise<readonly { readonly topic: string; readonly count: number }[]>
  close(): Promise<void>
}
