import type { Command } from 'commander'
import { nearest } from '../job/known-options.ts'

/**
 * A group that lists when it is called alone hands every word to its list, which would complain of too many arguments.
 * A mistyped command of such a group gets the answer that commander gives elsewhere.
 */
export function refuseUnknownCommands(program: Command): void {
  for (const group of program.commands) group.hook('preSubcommand', refuseUnknown)
}

function refuseUnknown(group: Command): void {
  const [word = '-'] = group.args
  const known = group.commands.map((command) => command.name())
  if (word.startsWith('-') || known.includes(word)) return
  const near = nearest(word, known)
  const hint = near === null ? `the commands are ${known.join(', ')}` : `Did you mean ${near}?`
  group.error(`unknown command '${word}' (${hint})`, { code: 'commander.unknownCommand' })
}
