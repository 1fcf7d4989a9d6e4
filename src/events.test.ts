import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Events } from './events.ts'

const stopped = (worker: string) => ({ worker })

test('listeners hear the events of their name, in order, until they unsubscribe', () => {
  const events = new Events()
  const heard: string[] = []
  const off = events.on('worker.stopped', ({ worker }) => heard.push(worker))
  events.emit('worker.stopped', stopped('a'))
  events.emit('job.cancelled', { id: '1', who: 'w', reason: 'r' })
  events.emit('worker.stopped', stopped('b'))
  off()
  off()
  events.emit('worker.stopped', stopped('c'))
  assert.deepEqual(heard, ['a', 'b'])
})

// X030
test('a listener that throws is reported and disturbs neither the emitter nor the others', () => {
  const reported: unknown[] = []
  const events = new Events((error) => reported.push(error))
  let heard = 0
  events.on('worker.stopped', () => {
    throw new Error('broken listener')
  })
  events.on('worker.stopped', () => {
    heard += 1
  })
  events.emit('worker.stopped', stopped('a'))
  assert.equal(heard, 1)
  assert.deepEqual(reported.map(String), ['Error: broken listener'])
})

// X030
test('an async listener that rejects is reported too and does not end the process', async () => {
  const { promise: reported, resolve } = Promise.withResolvers<unknown>()
  const events = new Events(resolve)
  events.on('worker.stopped', async () => {
    throw new Error('rejected later')
  })
  events.emit('worker.stopped', stopped('a'))
  assert.match(String(await reported), /rejected later/)
})

test('a reporter that throws does not disturb the work either', () => {
  const events = new Events(() => {
    throw new Error('broken reporter')
  })
  events.on('worker.stopped', () => {
    throw new Error('broken listener')
  })
  events.emit('worker.stopped', stopped('a'))
})

test('one function registered twice hears twice, and each unsubscriber removes its own', () => {
  const events = new Events()
  let heard = 0
  const listener = (): void => {
    heard += 1
  }
  const off = events.on('worker.stopped', listener)
  events.on('worker.stopped', listener)
  events.emit('worker.stopped', stopped('a'))
  assert.equal(heard, 2)
  off()
  events.emit('worker.stopped', stopped('b'))
  assert.equal(heard, 3)
})

test('a listener added while an event is told hears only the next one', () => {
  const events = new Events()
  const heard: string[] = []
  const listen = (): void => {
    events.on('worker.stopped', ({ worker }) => heard.push(worker))
    first()
  }
  const first = events.on('worker.stopped', listen)
  events.emit('worker.stopped', stopped('a'))
  events.emit('worker.stopped', stopped('b'))
  assert.deepEqual(heard, ['b'])
})

test('next resolves with the first event that matches and then listens no more', async () => {
  const events = new Events()
  let asked = 0
  const next = events.next('worker.stopped', ({ worker }) => {
    asked += 1
    return worker === 'b'
  })
  for (const worker of ['a', 'b', 'b']) events.emit('worker.stopped', stopped(worker))
  assert.deepEqual(await next, stopped('b'))
  assert.equal(asked, 2)
})

test('whether anyone hears an event is known beforehand', () => {
  const events = new Events()
  assert.equal(events.hasListener('worker.stopped'), false)
  const off = events.on('worker.stopped', () => {})
  assert.deepEqual([events.hasListener('worker.stopped'), events.hasListener('job.cancelled')], [true, false])
  off()
  assert.equal(events.hasListener('worker.stopped'), false)
})
