import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ScenarioResult } from '../result.ts'
import { SCENARIOS } from '../scenarios/index.ts'
import { renderMarkdown } from './markdown.ts'
import { panelsOf, renderSvg } from './svg.ts'

/** What is published: runs of standard size. */
export const RESULTS_DIR = fileURLToPath(new URL('../results/', import.meta.url))
/** What somebody tried: kept out of the repository. */
export const LOCAL_DIR = fileURLToPath(new URL('../results/local/', import.meta.url))
export const DOCS_DIR = fileURLToPath(new URL('../../docs/', import.meta.url))

export async function writeResult(dir: string, result: ScenarioResult): Promise<void> {
  await mkdir(dir, { recursive: true })
  await writeFile(join(dir, `${result.scenario}.json`), `${JSON.stringify(result, null, 2)}\n`)
}

/** The stored results in the order of the scenarios; those never run are left out. */
export async function readResults(dir: string): Promise<readonly ScenarioResult[]> {
  const results: ScenarioResult[] = []
  for (const { name } of SCENARIOS) {
    try {
      results.push(JSON.parse(await readFile(join(dir, `${name}.json`), 'utf8')))
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    }
  }
  return results
}

/** Writes the page and its picture from what `resultsDir` holds. */
export async function writeDocs(resultsDir: string, docsDir: string): Promise<void> {
  const results = await readResults(resultsDir)
  await writeFile(join(docsDir, 'benchmarks.md'), renderMarkdown(results))
  await writeFile(join(docsDir, 'benchmarks.svg'), renderSvg(panelsOf(results)))
}
