import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SseReader } from './sse.ts'

test('events are read whatever the pieces are cut into', () => {
  const text = ': hello\n\nevent: jobs\ndata: {"ids":["a"]}\n\ndata: one\r\ndata: two\r\n\r\nevent: bare\n\n'
  for (let size = 1; size <= text.length; size += 1) {
    const reader = new SseReader()
    const events = []
    for (let at = 0; at < text.length; at += size) events.push(...reader.take(text.slice(at, at + size)))
    assert.deepEqual(
      events,
      [
        { name: 'jobs', data: '{"ids":["a"]}' },
        { name: 'message', data: 'one\ntwo' },
      ],
      `in pieces of ${size}`,
    )
  }
})

test('an event that has not ended is not told', () => {
  const reader = new SseReader()
  assert.deepEqual(reader.take('event: point\ndata: {}\n'), [])
  assert.deepEqual(reader.take('\n'), [{ name: 'point', data: '{}' }])
})
