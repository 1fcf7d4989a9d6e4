import { userInfo } from 'node:os'

/** Who types, as the history and the audit will name them. A container may run under a user id that has no name. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'cli'
  }
}
