import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as errors from '../../src/errors.ts'
import * as index from '../../src/index.ts'
import { sourceFiles } from './source.ts'

/** Classes of errors that one module declares and another might test for. */
const DECLARED = /^export (?:abstract )?class (\w+)/gm

test('our errors are recognised by their code, never by their class: a program may hold two copies of the package', () => {
  const files = sourceFiles(['src', 'workloads'], { tests: false })
  const declared = files.find(({ path }) => path === 'src/errors.ts')
  assert.ok(declared)
  const classes = [...declared.text.matchAll(DECLARED)].map(([, name]) => name)
  assert.ok(classes.includes('Offline') && classes.includes('MillraceError'))
  const tested = new RegExp(`instanceof (?:${classes.join('|')})\\b`)
  const found = files.flatMap(({ path, code }) =>
    code.split('\n').flatMap((line, index) => (tested.test(line) ? [`${path}:${index + 1}`] : [])),
  )
  assert.deepEqual(found, [], `use isMillraceError(error, 'ERR_...') of src/errors.ts`)
  assert.match('if (error instanceof Offline) {', tested)
})

test('the root exports what a handler throws and what tells errors apart by their code', () => {
  const isClass = (value: unknown): boolean => Object(value).prototype instanceof Error
  const classes = Object.entries(errors).flatMap(([name, value]) => (isClass(value) ? [name] : []))
  assert.ok(classes.length > 15)
  assert.deepEqual(
    classes.filter((name) => name in index),
    ['MillraceError', 'NonRetryable', 'Offline', 'Postpone', 'RetryAfter'],
  )
  assert.equal(index.isMillraceError(new errors.ClosedError('this mill'), 'ERR_CLOSED'), true)
})
