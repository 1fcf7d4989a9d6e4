import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { examplesOf, ROOT } from './blocks.ts'

const found = examplesOf('docs/testing.md').filter(({ code }) => code.includes("from 'node:test'"))
const [{ code } = { code: '' }] = found

/** Runs it as its reader would: as a test file of its own. */
function runTest(source: string): { readonly status: number | null; readonly out: string } {
  const parent = path.join(ROOT, '.cache')
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(path.join(parent, 'testing-'))
  try {
    writeFileSync(path.join(folder, 'remind.test.ts'), source)
    const args = ['--test', '--test-reporter=tap', 'remind.test.ts']
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, timeout: 300_000 })
    return { status, out: `${stdout}${stderr}` }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test("the page's test of a user's own job passes, and fails when the job is wrong", () => {
  assert.equal(found.length, 1)
  const right = runTest(code)
  assert.equal(right.status, 0, right.out)
  assert.match(right.out, /^# pass 1$/m)
  const wrong = runTest(code.replace('`reminded ', '`forgot '))
  assert.equal(wrong.status, 1, wrong.out)
  assert.match(wrong.out, /^# fail 1$/m)
})

test("the test of a user's own job has at most ten lines without its imports", () => {
  const lines = code.split('\n').filter((line) => line !== '' && !line.startsWith('import '))
  assert.ok(lines.length <= 10, `${lines.length} lines`)
})
