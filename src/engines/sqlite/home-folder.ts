import { isAbsolute } from 'node:path'

/**
 * Null where the user has none: HOME is empty or not absolute, or it is not set and the system does not know the user, as in
 * containers that run under any id. A relative one would be another folder for every process.
 */
export function homeFolder(): string | null {
  try {
    const set = process.platform === 'win32' ? undefined : process.env.HOME
    // As node:os would answer, without loading it: the hook of the conversations starts anew for every prompt.
    const home = set ?? process.getBuiltinModule('node:os').homedir()
    return isAbsolute(home) ? home : null
  } catch {
    return null
  }
}
