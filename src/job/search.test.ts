import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatSearch, parseSearch } from './search.ts'

const NOW = Date.UTC(2026, 10, 18, 9)
const NONE = { tags: [], errors: [], payload: [], words: [] }

const read: readonly [text: string, search: object][] = [
  ['', {}],
  ['  ', {}],
  [
    'type:send-email error:ECONNREFUSED since:1h',
    { type: 'send-email', errors: ['ECONNREFUSED'], sinceMs: NOW - 3_600_000 },
  ],
  ['state:dead tag:a tag:"b c"', { state: 'dead_letter', tags: ['a', 'b c'] }],
  ['tenant:acme/w key:order:1 id:01J', { tenant: 'acme/w', key: 'order:1', id: '01J' }],
  ['payload.customer.id:42', { payload: [{ path: ['customer', 'id'], value: '42' }] }],
  [
    'until:2026-11-18 since:2026-11-17T09:30+01:00',
    { untilMs: Date.UTC(2026, 10, 18), sinceMs: Date.UTC(2026, 10, 17, 8, 30) },
  ],
  ['two words "and \\"one\\" quoted: text"', { words: ['two', 'words', 'and "one" quoted: text'] }],
]

for (const [text, search] of read) {
  test(`'${text}' is read`, () => assert.deepEqual(parseSearch(text, NOW), { ...NONE, ...search }))
}

const refused: readonly [text: string, says: RegExp][] = [
  ['typ:mail', /'typ' is not a field of a search; did you mean 'type'\? The fields are id, type, .* payload\.<field>/],
  ['http://host', /'http' is not a field of a search; the fields are .* Put other words with a colon in quotes/],
  ['type:', /'type:' has no value; write it after the colon/],
  ['type: mail', /'type:' has no value/],
  ['type:a type:b', /'type' twice/],
  ['state:gone', /'state' is 'gone'; give one of dead, queued, in_progress/],
  ['since:1w', /'since' is '1w'; give how long ago, such as 30m, 1h or 7d, or a time such as 2030-01-31/],
  ['until:2026-11-18T09:00', /'until' is '2026-11-18T09:00'/],
  ['error:"open', /a quote in the search is not closed/],
  ['"open', /a quote in the search is not closed/],
  ['""', /an empty term/],
  ['payload.:1', /'payload\.' is no path/],
  ['payload.a..b:1', /is no path/],
  ['x'.repeat(501), /longer than 500 characters/],
  ['a '.repeat(21), /more than 20 terms/],
]

for (const [text, says] of refused) {
  test(`'${text.slice(0, 30)}' is refused with what is allowed`, () => {
    assert.throws(() => parseSearch(text, NOW), { code: 'ERR_OPTION_INVALID', message: says })
  })
}

test('a search is written as it is read, without its times', () => {
  const text = String.raw`id:1 type:a state:queued key:k tenant:acme tag:"b c" error:x payload.a.b:"say \"hi\" \\" word "with: colon"`
  const search = parseSearch(text, NOW)
  assert.equal(formatSearch(search), text)
  assert.deepEqual(parseSearch(formatSearch(search), NOW), search)
  assert.equal(formatSearch(parseSearch('since:1h', NOW)), '')
})
