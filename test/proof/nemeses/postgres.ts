/** All faults that only Postgres knows. */
import type { Nemesis } from '../scene.ts'
import { lockNemeses } from './postgres-locks.ts'
import { serverNemeses } from './postgres-server.ts'
import type { Struck } from './postgres-session.ts'
import { sessionNemeses } from './postgres-sessions.ts'
import { tableNemeses } from './postgres-tables.ts'

export function postgresNemeses(struck: Struck): readonly Nemesis[] {
  return [...serverNemeses(struck.servers), ...sessionNemeses(struck), ...lockNemeses(struck), ...tableNemeses(struck)]
}
