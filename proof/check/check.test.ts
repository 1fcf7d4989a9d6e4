import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { check, type Violation } from './check.ts'
import { falseHistories } from './false-histories/index.ts'
import { rules } from './rules/index.ts'

const told = (violations: readonly Violation[]): string =>
  violations.map(({ rule, sentence }) => `${rule}: ${sentence}`).join('\n') || 'nothing'

describe('a false history is refused for its own reason, and the same one without its fault is accepted', () => {
  for (const { name, rule, sentence, facts, allowed } of falseHistories) {
    test(name, () => {
      const { violations } = check(facts())
      const isRefused = violations.some((violation) => violation.rule === rule && sentence.test(violation.sentence))
      assert.ok(isRefused, `it was to be refused by ${rule} with ${sentence}; found:\n${told(violations)}`)
      assert.equal(told(check(allowed()).violations), 'nothing')
    })
  }
})

test('every rule refuses at least one false history, and there are enough of them', () => {
  const refusing = new Set(falseHistories.map(({ rule }) => rule))
  assert.deepEqual(
    rules.map(({ name }) => name).filter((name) => !refusing.has(name)),
    [],
  )
  assert.ok(falseHistories.length >= 40)
})
