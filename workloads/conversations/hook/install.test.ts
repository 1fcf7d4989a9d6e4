import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { hookCommand, readSettings, withHook, writeSettings } from './install.ts'

const files = tempFiles()
const COMMAND = 'node /opt/millrace-hook.cjs'
const ENTRY = { hooks: [{ type: 'command', command: COMMAND, timeout: 5 }] }

test('new settings call the hook for prompts and answers', () => {
  const { text, changed } = withHook(null, COMMAND)
  assert.equal(changed, true)
  assert.deepEqual(JSON.parse(text), { hooks: { UserPromptSubmit: [ENTRY], Stop: [ENTRY] } })
  assert.deepEqual(withHook('', COMMAND), { text, changed })
})

test('everything else in the settings stays, and a second time changes nothing', () => {
  const other = { matcher: '', hooks: [{ type: 'command', command: 'say hello' }] }
  const before = {
    model: 'x',
    hooks: { UserPromptSubmit: [other], PreToolUse: [other] },
    permissions: { allow: ['a'] },
  }
  const { text } = withHook(JSON.stringify(before), COMMAND)
  assert.deepEqual(JSON.parse(text), {
    ...before,
    hooks: { UserPromptSubmit: [other, ENTRY], PreToolUse: [other], Stop: [ENTRY] },
  })
  assert.deepEqual(withHook(text, COMMAND), { text, changed: false })
  assert.deepEqual(withHook(text, '"/another node" /elsewhere/millrace-hook.cjs'), { text, changed: false })
})

test('settings that are not as they should be are refused', () => {
  for (const text of ['{', '[]', 'null', '1', '{"hooks":[]}', '{"hooks":{"Stop":{}}}', '{"hooks":"a"}']) {
    assert.throws(() => withHook(text, COMMAND), { code: 'ERR_OPTION_INVALID', message: /nothing was changed/ }, text)
  }
})

test('the file before is kept beside the new one', () => {
  const file = path.join(files.next(), 'folder/settings.json')
  assert.equal(readSettings(file), null)
  writeSettings(file, 'one')
  assert.equal(statSync(`${file}.backup`, { throwIfNoEntry: false }), undefined)
  writeSettings(file, 'two')
  assert.deepEqual([readSettings(file), readFileSync(`${file}.backup`, 'utf8')], ['two', 'one'])
})

test('the command names this Node and the built file, or the command of the package where nothing is built', () => {
  assert.match(hookCommand(), /^(?:millrace-hook|.*node.* .*millrace-hook\.cjs"?)$/)
})
