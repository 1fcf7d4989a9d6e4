import type { NewRecord } from './dead-letters/record.ts'
import type { TopicKind, Topics } from './topics.ts'

/**
 * Writes with topics that may be missing: they are created first, and again when somebody has deleted them since this
 * process last saw them. `send` writes the records, and is repeated only where none of them can have been written.
 */
export async function writeTo(
  topics: Topics,
  records: readonly NewRecord[],
  kind: TopicKind,
  send: () => Promise<unknown>,
): Promise<void> {
  const names = [...new Set(records.map(({ topic }) => topic))]
  if (names.length === 0) return
  await topics.ensure(names, kind)
  try {
    await send()
  } catch (error) {
    const gone = await topics.forgetMissing(names).catch(() => [])
    // Of several topics others may have been written to: who calls again does not know that, and must.
    if (gone.length < names.length) throw error
    await topics.ensure(names, kind)
    await send()
  }
}
