/** What claims give in the wrong order, beyond a limit, or of a paused type. */
import { type FalseHistory, falsely } from './false-history.ts'

export const claiming: readonly FalseHistory[] = [
  falsely(
    'a claim is given the less urgent first',
    ['order', /a claim was given job b after job a, though it is of priority 1, not 5/],
    (script, isFalse) => {
      script
        .batch([
          ['a', {}],
          ['b', { priority: 1 }],
        ])
        .wait(1)
        .claim(isFalse ? ['a', 'b'] : ['b', 'a'])
      return script.settle('a', 'complete').settle('b', 'complete')
    },
  ),
  falsely(
    'a claim is given what was due later first',
    ['order', /a claim was given job a after job b, though it was due before it/],
    (script, isFalse) => {
      script
        .enqueue('a')
        .wait(100)
        .enqueue('b')
        .wait(1)
        .claim(isFalse ? ['b', 'a'] : ['a', 'b'])
      return script.settle('a', 'complete').settle('b', 'complete')
    },
  ),
  falsely(
    'a less urgent job is handed out while a more urgent one waits',
    ['order', /b of priority 5 was handed out while job a of priority 1/],
    (script, isFalse) => {
      script
        .batch([
          ['a', { priority: 1 }],
          ['b', {}],
        ])
        .wait(200)
      return isFalse ? script.run('b').run('a') : script.run('a').run('b')
    },
  ),
  falsely(
    'a later job is handed out while an earlier one waits',
    ['order', /b of priority 5 was handed out while job a of priority 5/],
    (script, isFalse) => {
      script.enqueue('a').wait(500).enqueue('b').wait(200)
      return isFalse ? script.run('b').run('a') : script.run('a').run('b')
    },
  ),
  falsely(
    'a claim goes over the rate limit',
    ['limits', /3 jobs of type 'plain' were claimed within 40 ms; its limit is 2 in 100 ms/],
    (script, isFalse) => {
      const limit = { max: 2, perMs: 100 }
      script
        .batch([
          ['a', {}],
          ['b', {}],
          ['c', {}],
        ])
        .wait(1)
      script
        .claim(['a', 'b'], { limit, tookMs: 0 })
        .wait(isFalse ? 40 : 100)
        .claim(['c'], { limit, tookMs: 0 })
      return ['a', 'b', 'c'].reduce((told, id) => told.settle(id, 'complete'), script)
    },
  ),
  falsely(
    'more jobs of a type are held at once than it has slots',
    ['slots', /3 jobs of type 'plain' were held at once, and it has 2 slots/],
    (script, isFalse) => {
      const slots = { max: 2, by: null }
      script
        .batch([
          ['a', {}],
          ['b', {}],
          ['c', {}],
        ])
        .claim(['a', 'b'], { slots })
      if (!isFalse) script.settle('a', 'retry')
      script.claim(['c'], { slots, by: 'other' })
      if (!isFalse) script.settle('b', 'complete').claim(['a'])
      return ['a', 'c', ...(isFalse ? ['b'] : [])].reduce((told, id) => told.settle(id, 'complete'), script)
    },
  ),
  falsely(
    'more jobs of a tenant are held at once than it has slots',
    ['slots', /2 jobs of type 'plain' of tenant 'one' were held at once, and it has 1 slots/],
    (script, isFalse) => {
      const slots = { max: 1, by: 'tenant' } as const
      const [one, two] = ['a', 'b'].map((id) => (id === 'a' || isFalse ? 'one' : 'two'))
      script
        .batch([
          ['a', { tenant: one ?? '' }],
          ['b', { tenant: two ?? '' }],
          ['c', {}],
        ])
        .claim(['a'], { slots, lease: { tenant: one ?? '' } })
        .claim(['b'], { slots, lease: { tenant: two ?? '' }, by: 'other' })
        .claim(['c'], { slots })
      return ['a', 'b', 'c'].reduce((told, id) => told.settle(id, 'complete'), script)
    },
  ),
  falsely(
    'a claim is given more than it asked for',
    ['concurrency', /a claim of worker for 1 jobs was given 2/],
    (script, isFalse) => {
      script
        .batch([
          ['a', {}],
          ['b', {}],
        ])
        .claim(['a', 'b'], { max: isFalse ? 1 : 2 })
      return script.settle('a', 'complete').settle('b', 'complete')
    },
  ),
  falsely(
    'a claim is given more of a type than it asked for',
    ['concurrency', /for 1 jobs of type 'plain' was given 2/],
    (script, isFalse) => {
      script
        .batch([
          ['a', {}],
          ['b', {}],
        ])
        .claim(['a', 'b'], { perType: { plain: isFalse ? 1 : 2 } })
      return script.settle('a', 'complete').settle('b', 'complete')
    },
  ),
  falsely(
    'a claim is given a type that it did not ask for',
    ['concurrency', /worker was given job a of type 'strange', which it did not ask for/],
    (script, isFalse) => script.enqueue('a', { type: isFalse ? 'strange' : 'other' }).run('a'),
  ),
  falsely(
    'a worker runs more of a type at once than it may',
    ['concurrency', /worker ran 2 handlers of type 'plain' at once, and may run 1/],
    (script, isFalse) => {
      script.note({
        what: 'process',
        event: 'started',
        name: 'worker',
        concurrency: { '': 10, plain: isFalse ? 1 : 2 },
      })
      script
        .batch([
          ['a', {}],
          ['b', {}],
        ])
        .claim(['a', 'b'])
        .begin('a')
        .begin('b')
        .wait(5)
        .end('a')
        .end('b')
      return script.settle('a', 'complete').settle('b', 'complete')
    },
  ),
  falsely(
    'a worker starts another handler in the place of one that was asked to stop and goes on',
    ['concurrency', /worker ran 2 handlers at once, and may run 1/],
    (script, isFalse) => {
      script
        .note({ what: 'process', event: 'started', name: 'worker', concurrency: { '': 1 } })
        .batch([
          ['a', {}],
          ['b', {}],
        ])
        .claim(['a', 'b'])
        .begin('a')
        .abort('a', isFalse ? 'ERR_STOPPING' : 'ERR_JOB_TIMEOUT')
        .begin('b')
        .wait(5)
      return script.end('b').settle('b', 'complete').end('a').settle('a', 'complete')
    },
  ),
  falsely(
    'a paused type is claimed',
    ['pauses', /worker claimed job a 1\d\d\d ms after its type 'plain' was paused/],
    (script, isFalse) => {
      const change = { kind: 'pause', name: 'plain' } as const
      const saved = { what: 'saved', receipts: [] } as const
      script
        .enqueue('a')
        .call({ what: 'save', ...change, revision: 'r', expected: null, body: '{}', jobs: [] }, saved)
        .wait(isFalse ? 1_500 : 500)
      script.run('a')
      return script.call({ what: 'remove', kind: 'pause', names: ['plain'] }, { what: 'removed', count: 1 })
    },
  ),
  falsely(
    'a fault of one worker excuses no other that claims a paused type',
    ['pauses', /worker claimed job a/],
    (script, isFalse) => {
      const saved = { what: 'saved', receipts: [] } as const
      script
        .enqueue('a')
        .call(
          { what: 'save', kind: 'pause', name: 'plain', revision: 'r', expected: null, body: '{}', jobs: [] },
          saved,
        )
      script
        .fault({ target: isFalse ? 'another' : 'worker' })
        .wait(1_500)
        .heal()
        .run('a')
      return script.call({ what: 'remove', kind: 'pause', names: ['plain'] }, { what: 'removed', count: 1 })
    },
  ),
]
