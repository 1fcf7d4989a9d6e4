/** Apart from what reads it: the hook loads that only if there is a file. */
import { join } from 'node:path'
import { homeFolder } from '../../../src/engines/sqlite/home-folder.ts'

/** `MILLRACE_CONVERSATIONS_CONFIG`, or ~/.millrace/conversations.json. Null for a user without a home folder. */
export function userRulesFile(env: Readonly<Record<string, string | undefined>>): string | null {
  const home = homeFolder()
  return env.MILLRACE_CONVERSATIONS_CONFIG ?? (home === null ? null : join(home, '.millrace', 'conversations.json'))
}
