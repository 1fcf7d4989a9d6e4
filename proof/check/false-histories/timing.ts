/** What starts too early, too late, too often at once, or in the wrong order. */
import { type Excused, falsely } from './false-history.ts'
import type { Script } from './script.ts'

const worker = (script: Script, name: string, how = '0'): Script =>
  script.note({ what: 'process', event: 'exited', name, how })

export const timing: readonly Excused[] = [
  falsely(
    'not everything finishes after the faults',
    ['I6', /100 ms after all faults were healed not everything had finished/],
    (script, isFalse) => {
      script.enqueue('a').calm(100).run('a')
      return isFalse ? script : script.note({ what: 'finished' })
    },
  ),
  falsely(
    'everything finishes too late',
    ['I6', /everything had finished 204 ms after .* not within 100 ms/],
    (script, isFalse) =>
      script
        .enqueue('a')
        .calm(isFalse ? 100 : 1_000)
        .wait(199)
        .run('a')
        .note({ what: 'finished' }),
  ),
  falsely(
    'a job is left in the queue',
    ['I6', /a is still queued at the end, and nothing holds it back/],
    (script, isFalse) => script.enqueue('a', isFalse ? {} : { delayMs: 60_000 }),
  ),
  falsely('a job is left leased', ['I6', /a is still leased at the end/], (script, isFalse) => {
    script.enqueue('a').claim(['a'])
    return isFalse ? script : script.settle('a', 'complete')
  }),
  falsely('a job waits though what it comes after is done', ['I6', /b is still queued at the end/], (script, isFalse) =>
    script
      .enqueue('a')
      .enqueue('b', { after: { ids: ['a'], ifDead: 'wait' } })
      .run('a', isFalse ? 'complete' : 'dead'),
  ),
  falsely(
    'a dead holder keeps its job for too long',
    ['I6', /a was held by killed, whose process had exited, for \d+ ms; within 46000 ms/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'], { by: 'killed' }).wait(5)
      worker(script, 'killed', 'SIGKILL').wait(isFalse ? 50_000 : 40_000)
      return script.claim(['a'], { by: 'reaper', from: 'expired' }).settle('a', 'dead')
    },
  ),
  falsely(
    'a store that was away excuses the time that it was away',
    ['I6', /a was held by killed, .* for \d+ ms/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'], { by: 'killed' }).wait(5)
      worker(script, 'killed', 'SIGKILL')
        .fault({ target: isFalse ? 'other' : null })
        .wait(50_000)
        .heal()
        .wait(10)
      return script.claim(['a'], { by: 'reaper', from: 'expired' }).settle('a', 'dead')
    },
  ),
  falsely(
    'a worker waits while a job waits',
    ['idle', /worker waited 300 ms for work and was given none, and job a could be claimed/],
    (script, isFalse) => {
      script
        .enqueue('a', isFalse ? {} : { type: 'unknown' })
        .wait(200)
        .claim([], { waitMs: 300, tookMs: 300 })
        .wait(10)
      return isFalse ? script.run('a') : script.cancel('a')
    },
  ),
  falsely(
    'a worker waits while a job waits whose delay is over',
    ['idle', /and job a could be claimed all the time/],
    (script, isFalse) => {
      script
        .enqueue('a', { delayMs: isFalse ? 100 : 900 })
        .wait(300)
        .claim([], { waitMs: 300, tookMs: 300 })
      return script.wait(400).run('a')
    },
  ),
  falsely(
    'a worker waits while a retry waits that is due',
    ['idle', /and job a could be claimed all the time/],
    (script, isFalse) => {
      script
        .enqueue('a')
        .claim(['a'])
        .settle('a', 'retry', { delayMs: isFalse ? 0 : 500 })
      return script.wait(150).claim([], { waitMs: 300, tookMs: 300 }).wait(200).run('a')
    },
  ),
  falsely(
    'a fault elsewhere and long ago is no reason to be idle',
    ['idle', /and job a could be claimed all the time/],
    (script, isFalse) => {
      script
        .fault({})
        .wait(10)
        .heal()
        .wait(isFalse ? 10_000 : 0)
        .enqueue('a')
        .wait(200)
      return script.claim([], { waitMs: 300, tookMs: 300 }).wait(10).run('a')
    },
  ),
  falsely(
    'a delayed job starts early',
    ['I11', /a was started 4\d\d ms before the time that it was asked for/],
    (script, isFalse) =>
      script
        .enqueue('a', { delayMs: 500 })
        .view('a', { runAtMs: isFalse ? 0 : script.wallMs })
        .wait(isFalse ? 10 : 600)
        .run('a'),
  ),
  falsely(
    'a job starts before the time of day that it was given',
    ['I11', /a was started \d+ ms before the time/],
    (script, isFalse) =>
      script
        .enqueue('a', { runAtMs: script.wallMs + 500 })
        .view('a', { runAtMs: 0 })
        .wait(isFalse ? 10 : 600)
        .run('a'),
  ),
  falsely(
    'a retry starts before its delay is over',
    ['I11', /a was started \d+ ms before the delay of its retry was over/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a']).settle('a', 'retry', { delayMs: 400 }).view('a', { runAtMs: 0 })
      return script.wait(isFalse ? 10 : 500).run('a')
    },
  ),
  falsely(
    'a job is claimed before it is due by the clock of the store',
    ['I11', /a was claimed \d+ ms before it was due, by the store's clock/],
    (script, isFalse) => {
      script.enqueue('a').view('a', { runAtMs: script.wallMs + 20 })
      return script.wait(isFalse ? 0 : 30).run('a')
    },
  ),
  falsely(
    'a fault of a process is no excuse for a clock',
    ['I11', /a was claimed \d+ ms before it was due/],
    (script, isFalse) => {
      script.enqueue('a').view('a', { runAtMs: script.wallMs + 30 })
      return script
        .fault(isFalse ? {} : { allows: ['wall-clock'] })
        .wait(1)
        .heal()
        .run('a')
    },
  ),
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
