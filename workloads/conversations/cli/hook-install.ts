import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { fieldOf } from '../../../src/errors.ts'
import { withHook } from '../hook/install.ts'

/** `millrace hook install`. */
export async function installHook({ options, json, terminal }: CommandCall): Promise<void> {
  const [file, command] = [String(options.settings), String(options.command)]
  const write = options.write === true
  const { text, changed } = withHook(readIfPresent(file), command)
  if (write && changed) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  if (json) return terminal.print(JSON.stringify({ file, command, changed, written: write && changed, settings: text }))
  if (!changed) return terminal.print(`${file} has the hook already.`)
  if (write) return terminal.print(`${file} now has the hook. It runs: ${command}`)
  terminal.print(text.trimEnd())
  terminal.complain(`This is what ${file} should be; add --write to write it.`)
}

function readIfPresent(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (fieldOf(error, 'code') === 'ENOENT') return null
    throw error
  }
}
