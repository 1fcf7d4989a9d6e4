import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { uuidToULID } from 'ulid'
import { ULID_PATTERN } from '../jobs/contract.ts'
import { readInput, toConversationId } from './input.ts'

const ULID = '01K5XJ7Q2M4R8T0V6W9Y3Z1A5B'

// B14
test('both forms of a prompt are read, and an id that is a ULID is kept', () => {
  const expected = { event: 'UserPromptSubmit', conversationId: ULID, role: 'user', content: 'hello' }
  assert.deepEqual(readInput({ event: 'UserPromptSubmit', conversation_id: ULID, content: 'hello' }), {
    message: expected,
  })
  assert.deepEqual(readInput({ hook_event_name: 'UserPromptSubmit', session_id: ULID, prompt: 'hello', cwd: '/' }), {
    message: expected,
  })
})

test('the last answer of an assistant is a message of the assistant', () => {
  const read = readInput({ hook_event_name: 'Stop', session_id: ULID, last_assistant_message: 'Done.' })
  assert.deepEqual(read.message, { event: 'Stop', conversationId: ULID, role: 'assistant', content: 'Done.' })
})

test('events without a message are ignored, and input that cannot be used is a fault; neither repeats the input', () => {
  const cases: readonly (readonly [unknown, boolean])[] = [
    [{ hook_event_name: 'Stop', session_id: ULID }, false],
    [{ hook_event_name: 'SessionEnd', session_id: ULID, reason: 'SECRET' }, false],
    [{ hook_event_name: 'PostToolUse', session_id: ULID, tool_response: 'SECRET' }, false],
    [{ hook_event_name: 'SECRET', session_id: ULID }, false],
    [{ hook_event_name: 'constructor', session_id: ULID, prompt: 'SECRET' }, false],
    [{ hook_event_name: 'UserPromptSubmit', session_id: ULID, prompt: ' ' }, true],
    [{ hook_event_name: 'UserPromptSubmit', session_id: ULID, prompt: ['SECRET'] }, true],
    [{ hook_event_name: 'UserPromptSubmit', prompt: 'SECRET' }, true],
    [{ session_id: ULID, prompt: 'SECRET' }, true],
    [JSON.parse('{"__proto__":{"event":"UserPromptSubmit","conversation_id":"a","content":"SECRET"}}'), true],
    [['SECRET'], true],
    ['SECRET', true],
    [null, true],
  ]
  for (const [input, isFault] of cases) {
    const read = readInput(input)
    assert.ok(read.message === null, JSON.stringify(input))
    assert.equal(read.isFault, isFault, JSON.stringify(input))
    assert.doesNotMatch(read.reason, /SECRET/)
  }
})

// B190
test('an id that is no ULID becomes one, always the same, and different for different ids', () => {
  const uuid = '0f8e7c1a-1111-4222-8333-944445555666'
  assert.equal(toConversationId(uuid), uuidToULID(uuid))
  assert.equal(toConversationId('session-1'), '4415W2HZ1HN34D54GGVX4906M5')
  assert.notEqual(toConversationId(ULID.toLowerCase()), ULID)
  // More than 128 bits.
  assert.notEqual(toConversationId(`8${ULID.slice(1)}`), `8${ULID.slice(1)}`)
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
      const id = toConversationId(one)
      assert.match(id, ULID_PATTERN)
      assert.match(id, /^[0-7]/)
      assert.equal(toConversationId(id), id)
      if (one.toWellFormed() !== other.toWellFormed()) assert.notEqual(toConversationId(other), id)
    }),
  )
})

test('nothing that JSON can hold makes it throw', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => void readInput(value)))
})
