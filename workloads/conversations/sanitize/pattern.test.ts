import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isMillraceError } from '../../../src/errors.ts'
import { compilePattern } from './pattern.ts'

function found(pattern: string, text: string, ignoreCase = false): string[] {
  return compilePattern(pattern, { ignoreCase })(text).map(({ start, end }) => text.slice(start, end))
}

test('a pattern finds literals, sets, groups, alternatives and repeats', () => {
  assert.deepEqual(found('EMP-\\d{6}', 'EMP-123456, EMP-12345, EMP-1234567'), ['EMP-123456', 'EMP-123456'])
  assert.deepEqual(found('\\bEMP-\\d{6}\\b', 'EMP-123456, XEMP-123456, EMP-1234567'), ['EMP-123456'])
  assert.deepEqual(found('(?:ab|cd)+e?', 'xabcdabe ab'), ['abcdabe', 'ab'])
  assert.deepEqual(found('[A-Fx-z_-]{2,3}', 'AB xyz- g'), ['AB', 'xyz-'])
  assert.deepEqual(found('[^a-z ]+', 'abc 123 !'), ['123', '!'])
  assert.deepEqual(found('a{0,2}b', 'aaab b'), ['aab', 'b'])
  assert.deepEqual(found('a{2,}', 'a aa aaa'), ['aa', 'aaa'])
  assert.deepEqual(found('kunde \\w+', 'Kunde Müller', true), ['Kunde Müller'])
  assert.deepEqual(found('a\\.b\\\\b', 'a.b\\b axb'), ['a.b\\b'])
  assert.deepEqual(found('\\u0041\\x42', 'AB'), ['AB'])
})

test('all that any match covers is found, also where matches overlap', () => {
  assert.deepEqual(found('aba', 'xababax'), ['ababa'])
  assert.deepEqual(found('".*"', '"a" and "b"'), ['"a" and "b"'])
})

test('a pattern that cannot be matched in linear time is refused with what to write', () => {
  for (const [pattern, why] of [
    ['(?=a)b', /look-around/],
    ['(a)\\1', /references to groups/],
    ['a+?', /longest/],
    ['(a', /no '\)'/],
    ['a)', /no '\('/],
    ['[a', /no '\]'/],
    ['^a', /\\\^/],
    ['a*', /empty text/],
    ['', /empty text/],
    ['[z-a]', /wrong order/],
    ['a{3,2}', /wrong order/],
    ['a\\bc', /two ends/],
    ['a{300}', /256/],
    [
      '(?:a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s|t|u|v|w|x|y|z|[0-9]|_|-){2,}(?:a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r)+',
      /split it/,
    ],
  ] as const) {
    assert.throws(
      () => compilePattern(pattern, { ignoreCase: false }),
      (error) => isMillraceError(error, 'ERR_OPTION_INVALID') && why.test(error.message),
      pattern,
    )
  }
})

/** Patterns whose union of matches a plain search with every start and end can tell. */
const atom = fc.constantFrom('a', 'b', '[ab]', '.', '(?:ab|c)', '(?:a|bc?)', '[^a]')
const repeated = fc
  .tuple(atom, fc.constantFrom('', '?', '*', '+', '{2}', '{1,3}', '{0,2}', '{2,}'))
  .map((parts) => parts.join(''))

test('the automaton covers what a search from every start to every end covers', () => {
  const seed = Math.trunc(Math.random() * 2 ** 31)
  console.log(`seed ${seed}`)
  fc.assert(
    fc.property(
      fc.array(repeated, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('')),
      fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' '), maxLength: 12 }),
      (pattern, text) => {
        const whole = new RegExp(`^(?:${pattern})$`)
        if (whole.test('')) return
        const covered = Array.from(text, () => false)
        for (let start = 0; start < text.length; start++) {
          for (let end = start + 1; end <= text.length; end++) {
            if (whole.test(text.slice(start, end))) covered.fill(true, start, end)
          }
        }
        const ours = Array.from(text, () => false)
        for (const { start, end } of compilePattern(pattern, { ignoreCase: false })(text)) ours.fill(true, start, end)
        assert.deepEqual(ours, covered, `${pattern} in '${text}'`)
      },
    ),
    { seed, numRuns: 2_000 },
  )
})

test('nested and ambiguous repeats take time in proportion to the text', () => {
  for (const pattern of ['(?:a+)+b', '(?:a|aa)+b', 'a*b|a', 'a*a*a*a*b', '[a-z]{1,200}!']) {
    const find = compilePattern(pattern, { ignoreCase: false })
    find('a'.repeat(1_000))
    const started = process.hrtime.bigint()
    find('a'.repeat(20_000))
    // Backtracking would take hours; this takes milliseconds.
    assert.ok(process.hrtime.bigint() - started < 5_000_000_000n, pattern)
  }
})
