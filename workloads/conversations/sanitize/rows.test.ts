/** Many of a kind in one text: in lists, in rows of a table, in lines that are written as \n. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSanitizer } from './sanitize.ts'

const sanitize = createSanitizer()
const COUNT = 40

const ITEMS: readonly (readonly [item: string, sanitised: string])[] = [
  ['john@example.com', '[EMAIL]'],
  ['10.1.2.3', '[IP]'],
  ['2001:db8::ff00:42:8329', '[IP]'],
  ['a4:83:e7:12:34:56', '[MAC]'],
  ['+1 202 555 0143', '[PHONE]'],
  ['(202) 555-0143', '[PHONE]'],
  ['202-555-0143', '[PHONE]'],
  ['4242 4242 4242 4242', '[CARD]'],
  ['DE89370400440532013000', '[IBAN]'],
  ['123-45-6789', '[SSN]'],
  ['/home/bob/x', '/home/[USER]/x'],
  ['"password":"hunter2"', '"password":"[SECRET]"'],
  ['postgres://app:b1@db/x', 'postgres://[CREDENTIALS]@db/x'],
]

// B15
test('every one of many is replaced, whatever separates them, and the text is not removed as a whole', () => {
  for (const [item, sanitised] of ITEMS) {
    for (const separator of [',', ', ', ';', ' | ', '\t', '\n', '\\n', '\\\\n', '\\t']) {
      const { text } = sanitize(Array(COUNT).fill(item).join(separator))
      assert.equal(text, Array(COUNT).fill(sanitised).join(separator), JSON.stringify(separator))
    }
  }
})

const FOUND: readonly (readonly [text: string, sanitised: string])[] = [
  ['{"log":"GET /\\n83.12.4.99 - bob\\r\\n84.12.4.99"}', '{"log":"GET /\\n[IP] - bob\\r\\n[IP]"}'],
  ['allow 10.1.2.3-10.1.2.9', 'allow [IP]-[IP]'],
  ['42,10.0.0.1,GET', '42,[IP],GET'],
  ['web1,10.0.0.1', 'web1,[IP]'],
  ['Ann,202-555-0143,NYC', 'Ann,[PHONE],NYC'],
  ['john@example.com-backup', '[EMAIL]-backup'],
  ['gcc -I/home/bob/include -L/home/ann/lib', 'gcc -I/home/[USER]/include -L/home/[USER]/lib'],
  ['C:\\Users\\nina\\tools', 'C:\\Users\\[USER]\\tools'],
]

const LEFT: readonly string[] = [
  'libssl3-3.0.2.1 nginx-1.2.3.4 1.2.3.4-beta.1 1.2.3.4-1ubuntu2',
  '<path d="M8,1.1.9.2 a2,2.1.9.9"/>',
  'printf("%d\\n10 of 12\\t100 done\\n")',
  'C:\\temp\\new\\readme.txt',
  '/^\\+?[1-9]\\d{1,14}\\n$/',
  'split("\\n").map((line) => line.split("\\t"))',
  '1,234,567,890.12 and 100,200,300-400',
  'src/-I/home',
]

// B15
test('what stands in rows, ranges and escaped lines is found', () => {
  for (const [text, sanitised] of FOUND) assert.equal(sanitize(text).text, sanitised)
})

test('rows of other numbers and escapes in code stay', () => {
  for (const text of LEFT) assert.equal(sanitize(text).text, text)
})
