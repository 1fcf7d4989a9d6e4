// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the samples are source text
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blank } from './blank.ts'
import { sourceFiles } from './source.ts'

const cases: readonly (readonly [string, string])[] = [
  ['a // b', 'a     '],
  ['a /* b\nc */ d', 'a     \n     d'],
  ["x = 'any' + y", "x = '   ' + y"],
  ["x = 'it\\'s' + y", "x = '     ' + y"],
  ['x = "// no" + y', 'x = "     " + y'],
  ["'`' + a + '`'", "' ' + a + ' '"],
  ['// it`s\nx', '       \nx'],
  ['x = `a ${b} c` + d', 'x = `  ${b}  ` + d'],
  ['`${a.map((b) => `<${b}>`)} z` + y', '`${a.map((b) => ` ${b} `)}  ` + y'],
  ['`${ { a: 1 }.a } z` + y', '`${ { a: 1 }.a }  ` + y'],
  ['x.replace(/[/"]a/g, y)', 'x.replace(        , y)'],
  ['a / b / c', 'a / b / c'],
  ["return /'/.test(a) ? 'b' : c", "return    .test(a) ? ' ' : c"],
]

test('only code is left, where it was', () => {
  for (const [text, expected] of cases) assert.equal(blank(text), expected)
})

test('lines and columns of the whole project stay where they are', () => {
  const files = sourceFiles(['src', 'conformance', 'proof', 'test'], { tests: true })
  assert.ok(files.length > 50, `${files.length} files`)
  for (const { path, text, code } of files) {
    assert.equal(code.length, text.length, path)
    assert.equal(code.split('\n').length, text.split('\n').length, path)
  }
})
