/** Writes docs/cli.md from the commands. With --check it writes nothing and exits 1 when the page is out of date. */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { extensions } from '../bin/extensions.ts'
import { documentCommands } from '../src/cli/reference.ts'

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const PAGE = 'docs/cli.md'
const url = new URL(`../${PAGE}`, import.meta.url)
const text = documentCommands(extensions)
const before = await readFile(url, 'utf8').catch(() => null)
if (before === text) {
  console.log(`${PAGE} is up to date`)
} else if (values.check) {
  console.error(`${PAGE} is out of date; run npm run cli-reference`)
  process.exitCode = 1
} else {
  await writeFile(url, text)
  console.log(`${PAGE} written`)
}
