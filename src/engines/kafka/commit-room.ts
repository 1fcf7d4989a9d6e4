/** How much the brokers let a commit say beside its offset. Progress is written there: see progress.ts. */
import { EngineError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { within } from './deadline.ts'
import { configsOf, numberOf } from './diagnosis/settings.ts'
import { type Admin, type Client, isKafkaError } from './driver.ts'
import { METADATA_BYTES_MAX } from './progress.ts'

export const COMMIT_ROOM = 'offset.metadata.max.bytes'
/** A broker that is away is not waited for. */
const ASK_MS = 2_000

export function commitRoomRefusal(bytes: number): string {
  return `a broker lets a commit say ${bytes} bytes (${COMMIT_ROOM}) and Millrace needs ${METADATA_BYTES_MAX}: commits would be refused`
}

export const COMMIT_ROOM_ADVICE = `Set ${COMMIT_ROOM}=${METADATA_BYTES_MAX}, which is Kafka's default, on every broker.`

/** The least that any broker allows; null where none tells. */
export async function commitRoomOf(admin: Admin, client: Client, clock: Clock): Promise<number | null> {
  const { brokers } = await admin.metadata({ topics: [] })
  const { BROKER } = client.ConfigResourceTypes
  const told = await Promise.all(
    [...brokers.keys()].map(async (id) => {
      const asking = configsOf(admin, BROKER, [String(id)], [COMMIT_ROOM])
      const settings = (await within(clock, ASK_MS, asking).catch(() => null))?.get(String(id))
      return settings === undefined ? null : numberOf(settings, COMMIT_ROOM)
    }),
  )
  const known = told.filter((bytes) => bytes !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** Asked before a worker joins: it would work, and none of what it did would be kept. */
export async function throwIfNoRoom(admin: Admin, client: Client, clock: Clock): Promise<void> {
  // Who may not read the settings finds out by the first commit that is refused.
  const bytes = await commitRoomOf(admin, client, clock).catch(() => null)
  if (bytes === null || bytes >= METADATA_BYTES_MAX) return
  throw new EngineError('ERR_STORAGE_FAILED', `${commitRoomRefusal(bytes)}. ${COMMIT_ROOM_ADVICE}`)
}

/** A commit that was refused for what it says, with what to do about it; any other error as it is. */
export function explainCommit(client: Client, error: unknown): unknown {
  if (!isKafkaError(client, error, 'OFFSET_METADATA_TOO_LARGE')) return error
  const text = `the broker refuses commits because they say more than it allows. ${COMMIT_ROOM_ADVICE}`
  return new EngineError('ERR_STORAGE_FAILED', text, { cause: error })
}
