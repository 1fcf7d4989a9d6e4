import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Runs a program under this Node, which says that it is another version. */
function under(version: string, program: readonly string[]) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, ...program]
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  return spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' })
}

const OPEN = [
  '--input-type=module',
  '--eval',
  "import { open } from 'millrace'; await (await open('memory:')).close(); console.log('opened')",
]
const COMMAND = ['bin/millrace.js', '--version']
const SAYS = /Millrace needs Node 24\.15 or newer, and this is Node (?:20\.20\.2|24\.14\.9)/

test('an older Node is told which one is needed, by open and by the command', () => {
  for (const version of ['20.20.2', '24.14.9']) {
    const opened = under(version, OPEN)
    assert.match(opened.stderr, SAYS)
    assert.match(opened.stderr, /ERR_NODE_VERSION/)
    assert.equal(opened.status, 1)
    const called = under(version, COMMAND)
    assert.match(called.stderr.split('\n')[0] ?? '', SAYS)
    assert.deepEqual([called.status, called.stdout], [2, ''])
  }
})

test('the version that is asked for is the one in package.json, and it and newer ones are taken', () => {
  const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal(engines.node, '>=24.15')
  for (const version of ['24.15.0', '26.0.0']) {
    assert.equal(under(version, OPEN).stdout, 'opened\n')
    assert.equal(under(version, COMMAND).status, 0)
  }
})
