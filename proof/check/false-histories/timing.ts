/** What starts or stops too early, too late or never. */
import { type FalseHistory, falsely } from './false-history.ts'
import type { Script } from './script.ts'

const worker = (script: Script, name: string, how = '0'): Script =>
  script.note({ what: 'process', event: 'exited', name, how })

export const timing: readonly FalseHistory[] = [
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
    'a job waits though the one that its predecessor duplicates is done',
    ['I6', /c is still queued at the end/],
    (script, isFalse) =>
      script
        .enqueue('a', { key: 'k' })
        .batch(
          [
            ['b', { key: 'k' }],
            ['c', { after: { ids: ['b'], ifDead: 'wait' } }],
          ],
          { duplicates: { b: 'a' } },
        )
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
    'a retry starts early, and no earlier call may have settled it',
    ['I11', /a was started \d+ ms before the delay of its retry was over/],
    (script, isFalse) => {
      const retry = (isAnswered: boolean): Script => script.settle('a', 'retry', { delayMs: 400, isAnswered })
      script.enqueue('a').claim(['a'])
      if (!isFalse) retry(false)
      script.wait(300)
      retry(true).view('a', { runAtMs: 0 })
      return script.wait(150).run('a')
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
    'a stopped process exits with an error',
    ['I8', /worker was asked to stop and exited with 1/],
    (script, isFalse) =>
      script
        .note({ what: 'process', event: 'stopping', name: 'worker' })
        .wait(50)
        .note({ what: 'process', event: 'exited', name: 'worker', how: isFalse ? '1' : '0' }),
  ),
  falsely('a stopped process takes too long', ['I8', /worker took 500 ms to stop, and has 400 ms/], (script, isFalse) =>
    script
      .note({ what: 'process', event: 'stopping', name: 'worker', boundMs: isFalse ? 400 : 600 })
      .wait(500)
      .note({ what: 'process', event: 'exited', name: 'worker', how: '0' }),
  ),
  falsely(
    'a stopped process never exits, and the fault was of another',
    ['I8', /worker was asked to stop and never exited/],
    (script, isFalse) =>
      script
        .fault({ target: isFalse ? 'another' : 'worker' })
        .note({ what: 'process', event: 'stopping', name: 'worker' })
        .wait(50)
        .heal(),
  ),
  falsely(
    'a stopped process leaves a job leased',
    ['I8', /worker exited with 0 and left job a leased/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a']).note({ what: 'process', event: 'stopping', name: 'worker' })
      if (!isFalse) script.settle('a', 'release')
      script.wait(10).note({ what: 'process', event: 'exited', name: 'worker', how: '0' }).wait(1_500)
      if (isFalse) script.claim(['a'], { by: 'reaper', from: 'expired' }).settle('a', 'retry')
      return script.run('a', 'complete', { by: 'other' })
    },
  ),
]
