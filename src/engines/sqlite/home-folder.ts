import { homedir } from 'node:os'
import path from 'node:path'

/**
 * Null where the user has none: HOME is empty or not absolute, or it is not set and the system does not know the user, as in
 * containers that run under any id. A relative one would be another folder for every process.
 */
export function homeFolder(): string | null {
  try {
    const home = homedir()
    return path.isAbsolute(home) ? home : null
  } catch {
    return null
  }
}
