import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NonRetryable } from '../errors.ts'
import { ERROR_MESSAGE_LENGTH_MAX, ERROR_STACK_LENGTH_MAX, redact, toErrorRecord } from './error-record.ts'

// B201 X106 X019
test('what must not be stored is taken out of an error text', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['no mailbox john.doe+x@example.co.uk here', 'no mailbox [email] here'],
    ['postgres://user:s3cret@db.internal/x failed', 'postgres://[redacted]@db.internal/x failed'],
    ['redis://:p@ss@host:6379', 'redis://[redacted]@host:6379'],
    ['Authorization was Bearer abcdef0123456789', 'Authorization was Bearer [redacted]'],
    ['password=hunter2&user=x', 'password=[redacted]&user=x'],
    ['{"api_key": "k-1", "a": 1}', '{"api_key": "[redacted]", "a": 1}'],
    ['{"password": "my long pass phrase", "a": 1}', '{"password": "[redacted]", "a": 1}'],
    ["secret: 'two words' given", "secret: '[redacted]' given"],
    ['access_token=abc refresh_token=def', 'access_token=[redacted] refresh_token=[redacted]'],
    ['DB_PASSWORD=x1 AWS_SECRET_ACCESS_KEY=x2', 'DB_PASSWORD=[redacted] AWS_SECRET_ACCESS_KEY=[redacted]'],
    ['clientSecret: abc', 'clientSecret: [redacted]'],
    ['card 4111 1111 1111 1111 refused', 'card [number] refused'],
  ]
  for (const [text, expected] of cases) assert.equal(redact(text), expected)
})

test('ids, short numbers and plain words are left alone', () => {
  for (const text of [
    'job 01JD3ZQ4N0000000000000000 failed after 1234567 ms',
    'connect ECONNREFUSED 127.0.0.1:5432',
    'the compass: north',
    'no such file /var/data/a.txt',
  ]) {
    assert.equal(redact(text), text)
  }
})

test('an error becomes its name, code, message and stack', () => {
  const record = toErrorRecord(new NonRetryable('no such invoice'))
  assert.equal(record.name, 'NonRetryable')
  assert.equal(record.code, 'ERR_NON_RETRYABLE')
  assert.equal(record.message, 'no such invoice')
  assert.match(record.stack ?? '', /NonRetryable: no such invoice\n\s+at /)
})

// B201 X019 X106
test('message and stack pass the redactor and a length cap', () => {
  const error = new Error(`mail to a@b.example: ${'long '.repeat(10_000)}`)
  const record = toErrorRecord(error)
  assert.equal(record.message.length, ERROR_MESSAGE_LENGTH_MAX)
  assert.equal(record.stack?.length, ERROR_STACK_LENGTH_MAX)
  assert.equal(ERROR_MESSAGE_LENGTH_MAX, 2_000)
  assert.equal(ERROR_STACK_LENGTH_MAX, 500)
  assert.ok(record.message.startsWith('mail to [email]: long'))
  assert.ok(record.message.endsWith('...'), 'an ellipsis that a database of any encoding can keep')
  assert.doesNotMatch(record.stack ?? '', /a@b/)
})

// B201
test('a secret at the edge of the cap is not cut into something the redactor no longer knows', () => {
  for (let padding = ERROR_MESSAGE_LENGTH_MAX - 40; padding < ERROR_MESSAGE_LENGTH_MAX + 5; padding += 1) {
    const { message } = toErrorRecord(new Error(`${'x'.repeat(padding)} john@example.com`))
    assert.doesNotMatch(message, /john/)
  }
})

// X141
test('a thrown non-Error is described; undefined is no exception', () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ['plain text', /^the handler threw string: plain text$/],
    [undefined, /^the handler threw undefined/],
    [null, /^the handler threw object: null$/],
    [42, /^the handler threw number: 42$/],
    [10n, /^the handler threw bigint: 10$/],
    [Symbol('s'), /^the handler threw symbol: Symbol\(s\)$/],
    [{ reason: 'mail a@b.example' }, /^the handler threw object: \{"reason":"mail \[email\]"\}$/],
    [{ big: 1n }, /^the handler threw object$/],
    [Object.create(null), /^the handler threw object: \{\}$/],
  ]
  for (const [thrown, expected] of cases) {
    const record = toErrorRecord(thrown)
    assert.match(record.message, expected)
    assert.deepEqual([record.name, record.code, record.stack], ['NonError', 'ERR_THROWN', null])
  }
})

test('fields that are not text, or throw when read, do not stop the record', () => {
  const odd = Object.assign(new Error('x'), { message: { a: 1 }, stack: null, name: 7, code: 500 })
  assert.deepEqual(toErrorRecord(odd), { name: 'Error', code: null, message: '{"a":1}', stack: null })

  const hostile = new Proxy(new Error('x'), {
    get: () => {
      throw new Error('hands off')
    },
  })
  const record = toErrorRecord(hostile)
  assert.deepEqual([record.name, record.code, record.stack], ['Error', null, null])
})

test('a redactor of the user that throws withholds the text instead of losing the outcome', () => {
  const record = toErrorRecord(new Error('secret text'), () => {
    throw new Error('broken redactor')
  })
  assert.match(record.message, /withheld/)
  assert.doesNotMatch(JSON.stringify(record), /secret text/)
})

test('the redactor is linear: a megabyte without a space takes no noticeable time', () => {
  for (const text of ['a'.repeat(1_000_000), '1'.repeat(1_000_000), 'a.'.repeat(500_000), ' '.repeat(1_000_000)]) {
    const startedMs = performance.now()
    redact(text)
    toErrorRecord(new Error(text))
    const tookMs = performance.now() - startedMs
    // A step that looks back at each character would take minutes.
    assert.ok(tookMs < 20_000, `${tookMs} ms`)
  }
})

test('whatever an error says, its record can be stored: well-formed, without NUL, cut between two characters', () => {
  const pieces = fc.constantFrom('a', '\0', '\ud83d', '\ude00', '😀', 'é', ' ', '\n')
  const text = fc.tuple(fc.array(pieces, { maxLength: 6 }), fc.nat(2_100)).map(([start, repeats]) => {
    const unit = start.join('')
    return unit.repeat(Math.min(repeats, 1 + Math.floor(9_000 / Math.max(1, unit.length))))
  })
  fc.assert(
    fc.property(text, text, text, text, (name, code, message, stack) => {
      const record = toErrorRecord(Object.assign(new Error(message), { name, code, stack }))
      const bounds = { name: 200, code: 200, message: ERROR_MESSAGE_LENGTH_MAX, stack: ERROR_STACK_LENGTH_MAX }
      for (const [field, lengthMax] of Object.entries(bounds)) {
        const kept: unknown = Reflect.get(record, field)
        assert.ok(typeof kept === 'string', field)
        assert.ok(kept.length <= lengthMax && kept.isWellFormed() && !kept.includes('\0'), field)
      }
    }),
  )
})

test('a character at the edge of the cap is kept whole or left out', () => {
  for (const padding of ['', 'x']) {
    const { message } = toErrorRecord(new Error(`${padding}${'😀'.repeat(5_000)}`))
    assert.equal(message.replaceAll('😀', ''), `${padding}...`)
    assert.ok(message.length >= ERROR_MESSAGE_LENGTH_MAX - 1)
  }
})

test('values that throw when they are looked at become a record', () => {
  const revoked = (target: object): unknown => {
    const { proxy, revoke } = Proxy.revocable(target, {})
    revoke()
    return proxy
  }
  for (const thrown of [revoked({}), revoked(new Error('x')), revoked(() => {})]) {
    const { name, code, message } = toErrorRecord(thrown)
    assert.deepEqual([name, code], ['NonError', 'ERR_THROWN'])
    assert.match(message, /^the handler threw (object|function)$/)
  }
})
