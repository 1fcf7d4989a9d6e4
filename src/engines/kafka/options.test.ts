import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EngineError } from '../../errors.ts'
import { holdOf, parseUrl } from './options.ts'

test('a URL names brokers and a group, and the rest has defaults', () => {
  assert.deepEqual(parseUrl('kafka://127.0.0.1:9092?group=payouts'), {
    brokers: ['127.0.0.1:9092'],
    group: 'payouts',
    sessionMs: 30_000,
    heartbeatMs: 3_000,
    drainMs: 20_000,
    answerMs: 5_000,
    partitions: 6,
    prefix: '',
    hold: { otherwise: 'key', topics: {} },
    isolation: 'read_committed',
    from: 'earliest',
    security: { tls: null, sasl: null },
    desk: 'millrace.dlq',
  })
  assert.deepEqual(parseUrl('kafka://a,b:1234,[::1]:9,[::1]').brokers, ['a:9092', 'b:1234', '[::1]:9', '[::1]:9092'])
})

test('parameters are read, and a short session beats often enough', () => {
  const { hold, prefix, partitions, heartbeatMs, drainMs } = parseUrl(
    'kafka://a/?group=g&hold=partition&prefix=stage.&partitions=0&session=1500&drain=0',
  )
  assert.deepEqual([hold.otherwise, prefix, partitions, heartbeatMs, drainMs], ['partition', 'stage.', 0, 500, 0])
})

test('what a retry holds is said for all topics, and for single ones', () => {
  const holds = (hold: string, topic: string): string =>
    holdOf(parseUrl(`kafka://a?prefix=stage.&hold=${hold}`), `stage.${topic}`)
  assert.equal(holds('key,escrow.commands:partition', 'escrow.commands'), 'partition')
  assert.equal(holds('key,escrow.commands:partition', 'deal.events'), 'key')
  assert.equal(holds('escrow.commands:partition', 'deal.events'), 'key')
  assert.equal(holds('partition,a:key,b:key', 'b'), 'key')
  assert.equal(holds('partition,a:key,b:key', 'c'), 'partition')
  assert.equal(holds('key', 'constructor'), 'key')
})

test('whatever would change nothing in silence is refused with what to write instead', () => {
  const wrong = [
    'kafka:',
    'kafka://',
    'kafka://a,',
    'kafka://a b',
    'kafka://a/topic',
    'kafka://a?gruop=g',
    'kafka://a?isolation=committed',
    'kafka://a?isolation=',
    'kafka://a?group=g&group=h',
    'kafka://a?group=',
    'kafka://a?group=a/b',
    'kafka://a?hold=all',
    'kafka://a?hold=',
    'kafka://a?hold=key,partition',
    'kafka://a?hold=:key',
    'kafka://a?hold=a:all',
    'kafka://a?hold=a:key:b',
    'kafka://a?hold=a:key,a:partition',
    'kafka://a?session=soon',
    'kafka://a?session=',
    'kafka://a?session=999',
    'kafka://a?session=1000&heartbeat=600',
    'kafka://a?partitions=1.5',
    'kafka://a?prefix=a%20b',
    'kafka://a?desk=',
  ]
  for (const url of wrong) {
    assert.throws(
      () => parseUrl(url),
      (error) => error instanceof EngineError && error.code === 'ERR_ENGINE_URL' && /give 'kafka:/.test(error.message),
      url,
    )
  }
})
