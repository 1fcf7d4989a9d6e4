import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redact } from './error-record.ts'
import { encodeLine, LOG_BYTES_MAX, readLog } from './job-log.ts'

const head = { atMs: 7, level: 'info', attempt: 2, worker: 'host:1:a' } as const

/** What a reader sees of a line. */
function said(message: string, fields?: Readonly<Record<string, unknown>>, redactor = redact) {
  const line = encodeLine({ ...head, message, fields }, redactor)
  assert.ok(line.startsWith('{"'), 'engines rely on it')
  const [shown] = readLog([{ seq: 1, line }]).lines
  assert.ok(shown)
  return shown
}

test('a line comes back with its level, time, attempt, worker, message and fields', () => {
  assert.deepEqual(said('sent', { bytes: 12 }), { seq: 1, ...head, message: 'sent', fields: { bytes: 12 } })
  assert.equal(said('sent').fields, null)
  assert.equal(said('sent', {}).fields, null)
  assert.equal(said('NUL \0 and half \ud83c').message, 'NUL \0 and half \ud83c')
})

test('secrets are removed from messages and fields', () => {
  const { message, fields } = said('Bearer abcdefghijkl for ann@example.com', {
    apiKey: 'zanzibar',
    nested: [{ password: 'zanzibar' }],
    note: 'mail ann@example.com',
    at: 1_700_000_000_000,
  })
  assert.equal(message, 'Bearer [redacted] for [email]')
  assert.deepEqual(fields, {
    apiKey: '[redacted]',
    nested: [{ password: '[redacted]' }],
    note: 'mail [email]',
    at: 1_700_000_000_000,
  })
})

test('fields that JSON cannot hold are written as text', () => {
  const loop: { self?: unknown } = {}
  loop.self = loop
  assert.deepEqual(said('x', { big: 10n, none: undefined }).fields, { big: '10' })
  assert.match(String(said('x', { loop }).fields?.loop), /Circular/)
  const { error } = said('x', { error: new TypeError('no') }).fields as { error: { name: string; message: string } }
  assert.deepEqual([error.name, error.message], ['TypeError', 'no'])
})

test('a line that cannot be redacted is withheld and never throws', () => {
  const broken = (): string => {
    throw new Error('no')
  }
  assert.match(said('zanzibar', {}, broken).message, /withheld/)
})

test('a long line is cut so that several fit', () => {
  const { message, fields } = said('ö'.repeat(50_000), { text: 'y'.repeat(50_000) })
  assert.ok(message.endsWith('...') && message.length <= 4_000)
  assert.ok(String(fields?.cut).endsWith('...'))
  assert.ok(
    Buffer.byteLength(encodeLine({ ...head, message: '\0'.repeat(9_999), fields: undefined }, redact)) < LOG_BYTES_MAX,
  )
})

test('lines that are no longer kept are counted, and foreign ones shown as their text', () => {
  assert.deepEqual(readLog([]), { lines: [], dropped: 0 })
  const { lines, dropped } = readLog([
    { seq: 5, line: 'plain text' },
    { seq: 8, line: '{"message":3}' },
  ])
  assert.equal(dropped, 6)
  assert.deepEqual(
    lines.map(({ message, level, attempt }) => [message, level, attempt]),
    [
      ['plain text', 'info', 0],
      ['{"message":3}', 'info', 0],
    ],
  )
})
