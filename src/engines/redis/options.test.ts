import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineError } from '../../errors.ts'
import { parseUrl, threadUrlOf } from './options.ts'

describe('a Redis URL', () => {
  test('tells server, login, database and the parameters, with BullMQ’s prefix by default', () => {
    assert.deepEqual(parseUrl('redis://localhost'), {
      together: 'single',
      nodes: [{ host: 'localhost', port: 6379 }],
      address: { host: 'localhost', port: 6379, db: 0, username: null, password: null, tls: null },
      options: { prefix: 'bull', answerMs: 5_000, pollMs: 5_000, replicas: 0 },
    })
    assert.deepEqual(parseUrl('rediss://me:p%40ss@[::1]:7000/3?prefix=shop:jobs&timeout=250&poll=900&replicas=2'), {
      together: 'single',
      nodes: [{ host: '::1', port: 7000 }],
      address: { host: '::1', port: 7000, db: 3, username: 'me', password: 'p@ss', tls: {} },
      options: { prefix: 'shop:jobs', answerMs: 250, pollMs: 900, replicas: 2 },
    })
    assert.equal(parseUrl('redis://:secret@localhost').address.password, 'secret')
  })

  test('names the nodes of a cluster, or sentinels and the primary that they watch', () => {
    const nodes = [
      { host: 'a', port: 7000 },
      { host: '::1', port: 7001 },
      { host: 'c', port: 6379 },
    ]
    const cluster = parseUrl('redis+cluster://me:pw@a:7000,[::1]:7001,c/?prefix=shop')
    assert.deepEqual([cluster.together, cluster.nodes], ['cluster', nodes])
    assert.deepEqual([cluster.address.username, cluster.address.password, cluster.address.tls], ['me', 'pw', null])
    assert.deepEqual(parseUrl('rediss+cluster://a').address.tls, {})
    const { together, address } = parseUrl('redis+sentinel://:pw@s1:1,s2/4?name=jobs&sentinelUsername=look')
    assert.deepEqual([together, address.db, address.password], ['sentinel', 4, 'pw'])
    assert.deepEqual(address.sentinel, {
      sentinels: [
        { host: 's1', port: 1 },
        { host: 's2', port: 26379 },
      ],
      name: 'jobs',
      username: 'look',
      password: null,
    })
  })

  test('that cannot be meant is refused with the right form, and without its password', () => {
    const wrong = [
      ['redis:', /names no server/],
      ['redis://:s3cret@host/two', /database 'two'/],
      ['redis://:s3cret@host?prefx=a', /unknown parameter 'prefx'/],
      ['redis://:s3cret@host?prefix=', /prefix ''/],
      ['redis://:s3cret@host?prefix=a:', /prefix 'a:'/],
      ['redis://:s3cret@host?prefix=a*', /prefix 'a\*'/],
      ['redis://:s3cret@host?prefix=a&prefix=b', /twice/],
      ['redis://:s3cret@host?timeout=0', /timeout=0/],
      ['redis://:s3cret@host?timeout=', /timeout=/],
      ['redis://:s3cret@host?poll=soon', /poll=soon/],
      ['redis://:s3cret%@host', /stray %/],
      ['redis://:s3cret@host?ca=/a.pem', /no TLS; write rediss:/],
      ['rediss://:s3cret@host?cert=/a.pem', /needs both/],
      ['rediss://:s3cret@host?passwordEnv=A', /two passwords/],
      ['rediss://host?passwordEnv=A&passwordFile=/b', /give one/],
      ['redis://:s3cret@host?replicas=-1', /replicas=-1/],
      ['redis://:s3cret@host?name=jobs', /unknown parameter 'name'/],
      ['redis+cluster://:s3cret@a,b/2', /only number 0/],
      ['redis+cluster://:s3cret@a,b?prefix={x}', /no braces/],
      ['redis+cluster://:s3cret@a,:7', /no host:port/],
      ['redis+sentinel://:s3cret@a,b', /\?name=jobs/],
    ] as const
    for (const [url, why] of wrong) {
      assert.throws(
        () => parseUrl(url),
        (error) =>
          error instanceof EngineError &&
          error.code === 'ERR_ENGINE_URL' &&
          why.test(error.message) &&
          error.message.includes('redis://user:password@host:6379/0') &&
          !error.message.includes('s3cret'),
        url,
      )
    }
  })

  test('for the renewal thread waits for no answer longer than five seconds', () => {
    assert.equal(
      threadUrlOf('redis://:a@h:1/2?prefix=x&timeout=60000', 60_000),
      'redis://:a@h:1/2?prefix=x&timeout=5000',
    )
    assert.equal(parseUrl(threadUrlOf('redis://h?timeout=100', 100)).options.answerMs, 100)
    assert.equal(
      threadUrlOf('redis+cluster://a:7000@a:7000,b:7001/?prefix=x', 9_000),
      'redis+cluster://a:7000@a:7000,b:7001/?prefix=x&timeout=5000',
    )
  })
})
