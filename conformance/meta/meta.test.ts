/** Tests of the suite itself: that nothing of it is forgotten, unreachable or out of date. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Case, CaseFile } from '../case.ts'
import { LEVELS } from '../case.ts'
import { documentEngines } from '../document.ts'
import { engines } from '../engines/index.ts'
import golden from '../matrix.json' with { type: 'json' }
import { KEPT } from '../matrix.ts'
import { promises } from '../promises.ts'
import { casesOf, table } from '../table.ts'

const root = new URL('../../', import.meta.url)
const allCases = table.flatMap(({ cases }): readonly Case[] => cases)

const isCaseFile = (exported: unknown): exported is CaseFile =>
  typeof exported === 'object' && exported !== null && 'cases' in exported && 'concept' in exported

async function folders(path: string): Promise<readonly string[]> {
  const entries = await readdir(new URL(path, root), { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

test('every engine of src/engines is exercised under its own name', async () => {
  const all = await folders('src/engines/')
  const names = all.filter((name) => existsSync(new URL(`src/engines/${name}/engine.ts`, root))).sort()
  assert.deepEqual(Object.keys(engines).sort(), names, 'conformance/engines/index.ts')
  assert.deepEqual(Object.keys(golden).sort(), names, 'conformance/matrix.json')
  for (const name of names) {
    const text = await readFile(new URL(`conformance/engines/${name}.test.ts`, root), 'utf8')
    assert.match(text, new RegExp(`^exercise\\('${name}', .*golden: golden\\.${name}\\b`, 'm'))
    const harness = await engines[name]?.()
    assert.equal(harness?.engine.name, name)
    await harness?.destroy()
  }
})

test('every file of conformance/cases is in the table, under its own level', async () => {
  const found: CaseFile[] = []
  for (const level of await folders('conformance/cases/')) {
    for (const file of await readdir(new URL(`conformance/cases/${level}/`, root))) {
      const exported: Record<string, unknown> = await import(new URL(`conformance/cases/${level}/${file}`, root).href)
      const files = Object.values(exported).filter(isCaseFile)
      assert.equal(files.length, 1, `${level}/${file} exports one CaseFile`)
      for (const caseFile of files) {
        assert.equal(caseFile.level, level, `${level}/${file}`)
        assert.ok(table.includes(caseFile), `${level}/${file} is not in conformance/table.ts`)
        found.push(caseFile)
      }
    }
  }
  assert.equal(found.length, table.length)
  for (const level of LEVELS) assert.ok(casesOf(level).length > 0, level)
})

test('every case has a name of its own, a guarantee, and a twin if it may be excused', () => {
  const names = allCases.map(({ name }) => name)
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
  for (const { name, guarantees, excuse, refusal } of allCases) {
    assert.ok(guarantees.length > 0, `'${name}' holds no guarantee`)
    assert.equal(excuse === undefined, refusal === undefined, `'${name}' has an excuse and no twin`)
  }
})

test('every case runs un-excused on at least one engine', () => {
  const rows: readonly Readonly<Record<string, string>>[] = Object.values(golden)
  const never = allCases.filter(({ name }) => !rows.some((row) => row[name] === KEPT))
  assert.deepEqual(
    never.map(({ name }) => name),
    [],
  )
})

test('conformance/matrix.json is what the engines promise, and docs/engines.md is made from it', async () => {
  const documented = await promises(engines)
  assert.deepEqual(golden, documented.matrix, 'run npm run matrix')
  const text = await readFile(new URL('docs/engines.md', root), 'utf8')
  assert.equal(text, documentEngines(documented), 'run npm run matrix')
})
