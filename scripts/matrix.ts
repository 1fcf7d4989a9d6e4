/**
 * Writes conformance/matrix.json and docs/engines.md from what the engines declare.
 * With --check it writes nothing and exits 1 when one of them is out of date.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { documentEngines } from '../conformance/document.ts'
import { engines } from '../conformance/engines/index.ts'
import { promises } from '../conformance/promises.ts'

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const documented = await promises(engines)
const files: Readonly<Record<string, string>> = {
  'conformance/matrix.json': `${JSON.stringify(documented.matrix, null, 2)}\n`,
  'docs/engines.md': documentEngines(documented),
}

for (const [path, text] of Object.entries(files)) {
  const url = new URL(`../${path}`, import.meta.url)
  const before = await readFile(url, 'utf8').catch(() => null)
  if (before === text) {
    console.log(`${path} is up to date`)
  } else if (values.check) {
    console.error(`${path} is out of date; run npm run matrix`)
    process.exitCode = 1
  } else {
    await writeFile(url, text)
    console.log(`${path} written`)
  }
}
