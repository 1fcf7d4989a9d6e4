import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blank } from './blank.ts'
import { sourceFiles } from './source.ts'
import { wordsOf } from './words.ts'

/** Words that name nothing: a reader learns no more from them than that somebody had no better one. */
const BANNED = new Set(['manager', 'managers', 'helper', 'helpers', 'util', 'utils', 'utility', 'utilities'])
for (const word of ['common', 'task', 'tasks']) BANNED.add(word)

/** `base` is an option's name where a backoff starts; as part of a type's name it says only that others extend it. */
const BASE_TYPE = /\b(?:class|interface|type)\s+(?:Base[A-Z]\w*|\w+Base)\b/

function bannedIn(code: string): readonly string[] {
  const names = new Set(code.match(/[A-Za-z_$][\w$]*/g) ?? [])
  return [...names].filter((name) => wordsOf(name).some((word) => BANNED.has(word)))
}

test('no name in src/ uses a word that names nothing', () => {
  const files = sourceFiles(['src'], { tests: false })
  const found = files.flatMap(({ path, code }) => bannedIn(code).map((name) => `${path}: ${name}`))
  assert.deepEqual(found, [])
})

test('no file in src/ is named by such a word', () => {
  const files = sourceFiles(['src'], { tests: true })
  const found = files.filter(({ path }) => wordsOf(path).some((word) => BANNED.has(word) || word === 'base'))
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

test('no type is a base of others by name', () => {
  const found = sourceFiles(['src'], { tests: true }).filter(({ code }) => BASE_TYPE.test(code))
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

test('the law splits names into words', () => {
  assert.deepEqual(bannedIn(blank('const jobManager = 1; TASK_MAX; HTTPUtil; a.helper')), [
    'jobManager',
    'TASK_MAX',
    'HTTPUtil',
    'helper',
  ])
  assert.deepEqual(bannedIn(blank("database; queueMicrotask; uncommon; import x from 'node:util' // helper")), [])
  assert.match('class BaseWorker {', BASE_TYPE)
  assert.match('interface WorkerBase {', BASE_TYPE)
  assert.doesNotMatch('type Database = 1; const baseMs = 1; type Based = 1', BASE_TYPE)
})
