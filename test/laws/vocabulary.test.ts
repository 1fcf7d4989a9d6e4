/** Names that were private metaphors, and turns of phrase that no reader would use, stay out once they are gone. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ROOT, sourceFiles } from './source.ts'
import { wordsOf } from './words.ts'

/** A word of any identifier or file name in src/. */
const RETIRED_WORDS = new Set([
  ...[
    'workshop',
    'office',
    'tenure',
    'farewell',
    'farewells',
    'gather',
    'bag',
    'tidings',
    'ear',
    'doorbell',
    'blocker',
  ],
  ...['graveyard', 'burial', 'grip', 'careful', 'surplus', 'portion', 'portions', 'crew', 'noted', 'figures'],
  ...['hears', 'admission'],
])

/** A whole identifier in src/. */
const RETIRED_NAMES = new Set([
  ...['HeldJob', 'PassingMap', 'NeedsCare', 'GIVEN', 'By', 'Acting', 'DlqActing'],
  ...['Examined', 'Measured', 'Figured', 'Sampled', 'Traced'],
])

/** Anything a reader sees: comments, messages, pages, help. */
const RETIRED_PHRASES = [
  /\bdocument [A-E]\b/i,
  /\bunless told\b/i,
  /\bwhoever\b/i,
  /\b(?:number|that|what|which) is none\b/i,
  /\bthat is away\b/i,
  /\bthat there is not\b/i,
]

const READ = [
  'README.md',
  'CONTRIBUTING.md',
  'docs/**/*.md',
  'src/**/*.{ts,md}',
  'workloads/**/*.{ts,md}',
  'dashboard/src/**/*.{ts,tsx}',
  'examples/**/*.{ts,md}',
]

test('no identifier or file in src/ has a retired name', () => {
  const found = sourceFiles(['src'], { tests: false }).flatMap(({ path: file, code }) => {
    const names = [...new Set(code.match(/[A-Za-z_$][\w$]*/g) ?? []), path.basename(file, '.ts')]
    return names
      .filter((name) => RETIRED_NAMES.has(name) || wordsOf(name).some((word) => RETIRED_WORDS.has(word)))
      .map((name) => `${file}: ${name}`)
  })
  assert.deepEqual(found, [])
})

test('no text that a user or contributor reads has a retired phrase', () => {
  const found = globSync(READ, { cwd: ROOT, exclude: (name) => name.includes('node_modules') }).flatMap((file) => {
    const text = readFileSync(path.join(ROOT, file), 'utf8')
    return RETIRED_PHRASES.flatMap((phrase) => (phrase.test(text) ? [`${file}: ${phrase.source}`] : []))
  })
  assert.deepEqual(found, [])
})
