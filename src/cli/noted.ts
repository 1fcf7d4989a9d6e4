import type { Note } from '../client/audit.ts'
import type { Mill } from '../client/mill.ts'
import type { By } from '../engine/dead-letters.ts'
import { errorText } from '../observe/error-text.ts'
import type { Cli } from './cli.ts'
import { userName } from './who.ts'

type Act = Omit<Note, keyof By> & Partial<By>

/**
 * Writes an act that was carried out into the audit, where the engine has one. The act is done: an audit that cannot be
 * written is told, and does not turn the answer into a failure that invites to repeat it.
 */
export async function noted({ terminal }: Cli, mill: Mill, act: Act): Promise<void> {
  if (mill.engine.deadLetters === undefined) return
  try {
    await mill.note({ who: userName(), reason: 'from the command line', ...act })
  } catch (error) {
    terminal.complain(`it was done and could not be audited: ${errorText(error)}`)
  }
}
