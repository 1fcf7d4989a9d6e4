/** `npm run requirements`: writes into test/requirements.md who cites each row, and prints the rows that nobody cites. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { collect, rowIds, summary, withCitations } from './requirements-ledger.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const LEDGER = path.join(ROOT, 'test/requirements.md')

/** Where proof is kept: the tests of every folder, and all of the suite and the benchmarks, whose cases are no test files. */
const PROOF = ['{src,workloads,scripts}/**/*.test.ts', 'test/**/*.ts', 'conformance/**/*.ts', 'bench/**/*.ts']
/** Samples of citations, which prove nothing. */
const NO_PROOF = new Set(['scripts/requirements.test.ts'])

function readSources(): ReadonlyMap<string, string> {
  const files = globSync(PROOF, { cwd: ROOT }).map((file) => file.split(path.sep).join('/'))
  return new Map(
    files
      .filter((file) => !NO_PROOF.has(file))
      .toSorted()
      .map((file) => [file, readFileSync(path.join(ROOT, file), 'utf8')]),
  )
}

const ledger = readFileSync(LEDGER, 'utf8')
const citations = collect(rowIds(ledger), readSources())
writeFileSync(LEDGER, withCitations(ledger, citations))
for (const line of summary(citations)) console.log(line)
