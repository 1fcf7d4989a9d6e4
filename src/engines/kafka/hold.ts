/** What a record that waits for its retry keeps back: those of its own key, or all of its partition. */
export type Hold = 'key' | 'partition'

export interface Holds {
  readonly otherwise: Hold
  /** By topic, without the prefix. */
  readonly topics: Readonly<Record<string, Hold>>
}

/** `key`, `partition`, or with topics of their own: `key,escrow.commands:partition`. Null when it says something else. */
export function parseHolds(text: string): Holds | null {
  let otherwise: Hold | null = null
  const topics = new Map<string, Hold>()
  for (const part of text.split(',')) {
    const [first = '', second, ...more] = part.split(':')
    const hold = second ?? first
    if (!isHold(hold) || more.length > 0 || (second !== undefined && (first === '' || topics.has(first)))) return null
    if (second !== undefined) topics.set(first, hold)
    else if (otherwise === null) otherwise = hold
    else return null
  }
  return { otherwise: otherwise ?? 'key', topics: Object.fromEntries(topics) }
}

export function holdOf({ hold, prefix }: { readonly hold: Holds; readonly prefix: string }, topic: string): Hold {
  const name = topic.slice(prefix.length)
  return (Object.hasOwn(hold.topics, name) ? hold.topics[name] : undefined) ?? hold.otherwise
}

function isHold(text: string): text is Hold {
  return text === 'key' || text === 'partition'
}
