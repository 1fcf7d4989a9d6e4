import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import * as millrace from '../../src/index.ts'
import * as observe from '../../src/observe/index.ts'
import { ROOT, sourceFiles } from './source.ts'

interface Package {
  readonly exports: Readonly<Record<string, string>>
  readonly bin: Readonly<Record<string, string>>
}

const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8')
const manifest: Package = JSON.parse(read('package.json'))

test('every export and command has its source, and exports are sorted', () => {
  const names = Object.keys(manifest.exports)
  assert.ok(names.length >= 5)
  assert.deepEqual(names, [...names].sort())
  for (const source of [...Object.values(manifest.exports), ...Object.values(manifest.bin)]) {
    assert.ok(existsSync(path.join(ROOT, source)), source)
  }
})

/** The names that an index exports, types and values together. */
function exportedNames(file: string): readonly string[] {
  return [...read(file).matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, names = '']) =>
    names
      .split(',')
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== ''),
  )
}

const ROOT_NAMES_MAX = 45

test(`the root exports at most ${ROOT_NAMES_MAX} names, types and values together`, () => {
  const names = exportedNames('src/index.ts')
  assert.ok(names.includes('defineJob') && names.includes('Mill'))
  assert.equal(new Set(names).size, names.length)
  assert.ok(
    names.length <= ROOT_NAMES_MAX,
    `${names.length} names; engine authors use millrace/engine, observers millrace/observe`,
  )
})

test('classes that come from `open` are exported as types only', () => {
  const constructible = Object.keys(millrace).filter((name) =>
    ['Mill', 'Worker', 'Keeper', 'Desk', 'Events'].includes(name),
  )
  assert.deepEqual(constructible, [])
})

test('the index holds names only', () => {
  const code = read('src/index.ts').replace(/export (?:type )?(?:\*|\{[^}]*\}) from '[^']+'\n/g, '')
  assert.equal(code.trim(), '')
})

const sources = sourceFiles(['src'], { tests: false })
const written = globSync(['README.md', 'docs/*.md', 'examples/**/*.ts'], { cwd: ROOT }).map(read).join('\n')

/** The comment right above a declaration has an example. */
function hasExample(name: string): boolean {
  const declaration = new RegExp(
    `@example[^@]*?\\*/\\n(?:// biome-ignore[^\\n]*\\n)?export (?:async )?(?:function|class|const) ${name}\\b`,
  )
  return sources.some(({ text }) => declaration.test(text))
}

test('every public function, class and value is shown in use, by an example above it, in the docs or in examples/', () => {
  const names = [...Object.keys(millrace), ...Object.keys(observe)]
  assert.ok(names.includes('defineJob') && names.includes('open') && names.length > 15)
  const undocumented = names.filter((name) => !hasExample(name) && !new RegExp(`\\b${name}\\b`).test(written))
  assert.deepEqual(undocumented, [])
})

test('the law tells an example above from one elsewhere', () => {
  assert.equal(hasExample('defineJob'), true)
  assert.equal(hasExample('contentKey'), true)
  assert.equal(hasExample('backoffMaxMs'), false)
})
