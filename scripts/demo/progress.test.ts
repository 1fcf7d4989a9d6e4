import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barText } from './progress.ts'

test('a bar fits the terminal, so that it can be drawn again on its line', () => {
  assert.equal(barText(500, 1_000, 'texts', null), `${'█'.repeat(15)}${'░'.repeat(15)}  500 of 1000 texts`)
  for (const columns of [46, 50, 60, 80, 200]) {
    for (const done of [0, 1, 500, 1_000]) {
      const { length } = barText(done, 1_000, 'texts', columns)
      assert.ok(19 + length < columns, `${length} characters after the step in ${columns} columns`)
    }
  }
})
