import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FAMILIES, type Family } from '../families.ts'
import { HOOK_RESULTS } from './hook.ts'
import { type FamilyResults, pictureOf, renderMarkdown, type WorkloadResults } from './markdown.ts'
import { readIfThere, readPublished } from './published.ts'
import { withRates } from './readme.ts'
import { panelsOf, renderSvg } from './svg.ts'
import { VECTOR_RESULTS } from './vectors.ts'
import { WEBHOOK_RESULTS } from './webhooks.ts'

/** What is published: runs of standard size. */
export const RESULTS_DIR = fileURLToPath(new URL('../results/', import.meta.url))
/** What somebody tried: kept out of the repository. */
export const LOCAL_DIR = fileURLToPath(new URL('../results/local/', import.meta.url))
export const DOCS_DIR = fileURLToPath(new URL('../../docs/', import.meta.url))

/** SQLite came first and lies at the top. */
export function resultsDirOf(dir: string, family: Family): string {
  return family.name === 'sqlite' ? dir : join(dir, family.name)
}

/** What was measured of workloads. */
export async function readWorkloads(dir: string): Promise<WorkloadResults> {
  return {
    hook: await readIfThere(dir, HOOK_RESULTS),
    webhooks: await readIfThere(dir, WEBHOOK_RESULTS),
    vectors: await readIfThere(dir, VECTOR_RESULTS),
  }
}

/** The families of which anything was measured. */
export async function readFamilies(dir: string): Promise<readonly FamilyResults[]> {
  const all: FamilyResults[] = []
  for (const family of FAMILIES) {
    const results = await readPublished(resultsDirOf(dir, family), family)
    if (results.length > 0) all.push({ family, results })
  }
  return all
}

/** Writes the page, its pictures and the rates of the README from what `resultsDir` holds. */
export async function writeDocs(resultsDir: string, docsDir: string): Promise<void> {
  const families = await readFamilies(resultsDir)
  await writeFile(join(docsDir, 'benchmarks.md'), renderMarkdown(families, await readWorkloads(resultsDir)))
  for (const { family, results } of families) {
    await writeFile(join(docsDir, pictureOf(family)), renderSvg(panelsOf(results)))
  }
  const readme = join(docsDir, '../README.md')
  await writeFile(readme, withRates(await readFile(readme, 'utf8'), families))
}
