import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { isMillraceError } from '../../../src/errors.ts'
import { createSanitizer, SANITIZATION_VERSION } from './sanitize.ts'
import { loadUserRules, type UserRule, userRulesFile } from './user-rules.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'rules-'))
after(() => rmSync(folder, { recursive: true }))

function written(content: string): string {
  const file = path.join(folder, 'conversations.json')
  writeFileSync(file, content)
  return file
}

const CUSTOMERS: UserRule = {
  id: 'customers',
  category: 'customer',
  replacement: '[CUSTOMER]',
  terms: ['Acme Ltd', 'Müller', 'Иванов', 'C++ Works', 'email'],
}
const STAFF: UserRule = { id: 'staff', category: 'staff', replacement: '[STAFF]', pattern: '\\bE-\\d{6}\\b' }

test('terms are found as whole words in any case, with any white space, and hidden ones too', () => {
  const { text, findings } = createSanitizer({ rules: [CUSTOMERS] })(
    'ACME\n ltd, acme ltdx, müller, Müllerin, ИВАНОВ, c++ works; Ac\u200bme Ltd; %41cme Ltd; email a@example.com',
  )
  assert.equal(
    text,
    '[CUSTOMER], acme ltdx, [CUSTOMER], Müllerin, [CUSTOMER], [CUSTOMER]; [CUSTOMER]; [CUSTOMER]; [CUSTOMER] [EMAIL]',
  )
  assert.deepEqual(new Set(findings.map(({ category }) => category)), new Set(['customer', 'email']))
})

test('patterns are found, with the letters as written', () => {
  const cyrillic: UserRule = { id: 'x', category: 'x', replacement: '[X]', pattern: '[А-Я]{4}', ignoreCase: true }
  const sanitize = createSanitizer({ rules: [STAFF, cyrillic] })
  assert.equal(
    sanitize('ask E-123456 or E-1234567 about АВСЕ and ABCE').text,
    'ask [STAFF] or E-1234567 about [X] and ABCE',
  )
})

// X127
test('the version changes with the rules that users add', () => {
  const versionOf = (...rules: UserRule[]) => createSanitizer({ rules })('').version
  assert.equal(versionOf(), SANITIZATION_VERSION)
  assert.match(versionOf(STAFF), /^\d+\+[\da-f]{8}$/)
  assert.equal(versionOf(STAFF), versionOf({ ...STAFF }))
  assert.notEqual(versionOf(STAFF), versionOf(CUSTOMERS))
})

test('a rule that cannot be used is refused with what to do', () => {
  for (const [rule, why] of [
    [{ ...STAFF, flags: 'g' }, /'flags' is not known/],
    [{ ...STAFF, id: 'a b' }, /id/],
    [{ ...STAFF, id: 'mail' }, /two rules have the id 'mail'/],
    [{ ...STAFF, category: 'Staff!' }, /category/],
    [{ ...STAFF, replacement: '' }, /replacement/],
    [{ ...STAFF, replacement: 'x@example.com' }, /itself found by a rule/],
    [{ ...STAFF, replacement: 'E-000000' }, /itself found by a rule/],
    [{ ...STAFF, terms: ['a'] }, /either a pattern/],
    [{ ...CUSTOMERS, terms: [] }, /1 to 10000/],
    [{ ...CUSTOMERS, terms: ['@acme'] }, /start with a letter/],
    [{ ...STAFF, pattern: '(?<=a)b' }, /look-around/],
    [null, /id/],
  ] as const) {
    assert.throws(
      // What a file could hold, which the compiler cannot see.
      () => createSanitizer({ rules: [rule as UserRule] }),
      (error) => isMillraceError(error, 'ERR_OPTION_INVALID') && why.test(error.message),
      JSON.stringify(rule),
    )
  }
})

test('a file of rules is read; one that does not exist has none', () => {
  const file = written(JSON.stringify({ rules: [STAFF, CUSTOMERS] }))
  const loaded = loadUserRules(file)
  assert.equal(loaded.error, null)
  assert.equal(createSanitizer({ rules: loaded.rules })('E-123456').text, '[STAFF]')
  assert.deepEqual(loadUserRules(path.join(folder, 'none.json')), { rules: [], error: null })
  assert.deepEqual(loadUserRules(written('{}')), { rules: [], error: null })
})

test('a broken file is an error that says what to do, and rules that are good stay', () => {
  for (const content of ['{', '[]', '7', '{"rules":{}}']) {
    const { rules, error } = loadUserRules(written(content))
    assert.deepEqual(rules, [])
    assert.match(error?.message ?? '', /conversations\.json .*(?:correct|remove).*built-in rules are used/)
  }
  assert.match(loadUserRules(folder).error?.message ?? '', /EISDIR/)
  const mixed = loadUserRules(written(JSON.stringify({ rules: [{ ...STAFF, pattern: '(' }, CUSTOMERS, CUSTOMERS] })))
  assert.deepEqual(
    mixed.rules.map(({ id }) => id),
    ['customers'],
  )
  assert.match(
    mixed.error?.message ?? '',
    /rule 1: the pattern .* rule 3: the id 'customers' is used twice.*other rules are used/,
  )
})

test('the file is named by the environment, or is in the home folder', () => {
  assert.equal(userRulesFile({ MILLRACE_CONVERSATIONS_CONFIG: '/x.json' }), '/x.json')
  assert.equal(userRulesFile({}), path.join(os.homedir(), '.millrace', 'conversations.json'))
})
