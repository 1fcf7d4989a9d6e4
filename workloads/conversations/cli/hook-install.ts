import type { CommandCall } from '../../../src/cli/extensions.ts'
import { hookCommand, readSettings, withHook, writeSettings } from '../hook/install.ts'

/** `millrace hook install`. */
export async function installHook({ options, json, terminal }: CommandCall): Promise<void> {
  const file = String(options.settings)
  const command = options.command === undefined ? hookCommand() : String(options.command)
  const write = options.write === true
  const before = readSettings(file)
  const { text, changed } = withHook(before, command)
  if (write && changed) writeSettings(file, text)
  if (json) return terminal.print(JSON.stringify({ file, command, changed, written: write && changed, settings: text }))
  if (!changed) return terminal.print(`${file} has the hook already.`)
  const kept = before === null ? '' : ` What it was is in ${file}.backup.`
  if (write) return terminal.print(`${file} now has the hook. It runs: ${command}.${kept}`)
  terminal.print(text.trimEnd())
  terminal.complain(`This is what ${file} should be; add --write to write it.`)
}
