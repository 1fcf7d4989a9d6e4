import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blank } from './blank.ts'
import { importsOf } from './imports.ts'
import { isTest, type SourceFile, sourceFiles } from './source.ts'

const folders = ['src', 'conformance', 'proof', 'workloads', 'bench', 'scripts', 'examples']
const files = sourceFiles(folders, { tests: true })

/** `any` as a type; `AbortSignal.any(…)` and `z.any()` are calls. */
const ANY = /(?<![.\w$])any(?![\w$(:])/
const EXCUSE = /biome-ignore lint\/suspicious\/noExplicitAny: \S/

/** Lines with `any` whose line above gives no reason. */
function unexcused({ path, text, code }: SourceFile): readonly string[] {
  const lines = text.split('\n')
  return code
    .split('\n')
    .flatMap((line, index) =>
      ANY.test(line) && !EXCUSE.test(lines[index - 1] ?? '') ? [`${path}:${index + 1}: ${lines[index]}`] : [],
    )
}

test('the type any is used nowhere without a reason on the line above', () => {
  assert.deepEqual(files.flatMap(unexcused), [])
})

test('the compiler is silenced nowhere; a test may expect its error, with a reason', () => {
  const silenced = files.filter(({ text }) => /@ts-(?:ignore|nocheck)/.test(text))
  assert.deepEqual(
    silenced.map(({ path }) => path),
    [],
  )
  const expecting = files.filter(({ path, text }) => !isTest(path) && /@ts-expect-error/.test(text))
  assert.deepEqual(
    expecting.map(({ path }) => path),
    [],
  )
  const bare = files.filter(({ text }) => /@ts-expect-error[^\w\n]*\n/.test(text))
  assert.deepEqual(
    bare.map(({ path }) => path),
    [],
  )
})

const RUNS_TEXT = /\beval\s*\(|\bnew\s+Function\b|(?<![.\w])Function\s*\(/

// B192
test('nothing runs text as code', () => {
  const found = files.filter(({ path, code }) => path.startsWith('src/') && RUNS_TEXT.test(code))
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
  const imported = files
    .filter(({ path }) => path.startsWith('src/'))
    .flatMap(importsOf)
    .filter(({ to }) => to === 'vm' || to === 'node:vm' || to === 'node:repl')
  assert.deepEqual(imported, [])
})

/** What another runtime alone has, as a name or as a module. */
const OTHER_RUNTIME = /(?<![.\w$])(?:Bun|Deno)\s*[.[]/

// X024
test('everything runs on Node alone', () => {
  const found = files.filter(({ code }) => OTHER_RUNTIME.test(code))
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
  assert.deepEqual(
    files.flatMap(importsOf).filter(({ to }) => /^(?:bun|deno)(?::|$)/.test(to)),
    [],
  )
})

test('the laws above see what they look for', () => {
  for (const text of ['let a: any', 'x as any', 'any[]', 'Array<any>']) assert.match(blank(text), ANY, text)
  for (const text of ['AbortSignal.any([a])', 'z.any()', 'many', '// any', "'any'"])
    assert.doesNotMatch(blank(text), ANY, text)
  for (const text of ['Bun.serve({})', 'await Deno.open(a)', "Bun['env']"])
    assert.match(blank(text), OTHER_RUNTIME, text)
  for (const text of ['a.Bun.b', 'Bunch.of(1)', '// Bun.serve()']) assert.doesNotMatch(blank(text), OTHER_RUNTIME, text)
  for (const text of ['eval("1")', 'new Function("a")', 'Function("a")']) assert.match(blank(text), RUNS_TEXT, text)
  for (const text of ['evaluate(1)', 'a.Function(1)', '// eval(1)']) assert.doesNotMatch(blank(text), RUNS_TEXT, text)
})
