/** An engine that settles by a watermark and keeps order by key. */
import type { Capabilities } from '../../../src/engine/capabilities.ts'
import { type FalseHistory, falsely } from './false-history.ts'
import type { Script } from './script.ts'

const LOG: Partial<Capabilities> = {
  scope: 'type',
  settle: 'watermark',
  recovery: 'engine',
  recoveryMaxMs: 5_000,
  enqueueDelayMaxMs: 0,
  order: 'per-key',
  keys: 'partition',
  latest: false,
  idempotentEnqueue: false,
  enqueueAtomic: false,
  limits: 'refused',
  slots: 'refused',
  dependencies: false,
}

export const log: readonly FalseHistory[] = [
  falsely(
    'an acknowledged record is never completed',
    ['I1', /a was acknowledged, was never completed and is no dead letter/],
    (script, isFalse) => {
      script.enqueue('a')
      return (isFalse ? script : script.run('a')).facts(LOG)
    },
  ),
  falsely(
    'a dead record is no dead letter',
    ['I1', /a was acknowledged, was never completed and is no dead letter/],
    (script, isFalse) =>
      script
        .enqueue('a')
        .run('a', 'dead')
        .facts(LOG, isFalse ? [] : ['a']),
  ),
  falsely(
    'a record begins before the one of its key that stands before it has ended',
    ['order-by-key', /b of the key k began before job a, which stands before it, had ended/],
    (script, isFalse) => {
      script.enqueue('a', { key: 'k' }).enqueue('b', { key: 'k' })
      return (isFalse ? script.run('b').run('a') : script.run('a').run('b')).facts(LOG)
    },
  ),
  falsely(
    'a record begins before one of its key that stands further before it has ended',
    ['order-by-key', /c of the key k began before job a, which stands before it, had ended/],
    (script, isFalse) => {
      // Whether b stands before c is not known.
      script.enqueue('a', { key: 'k' }).enqueue('b', { key: 'k' }, { isAnswered: false }).enqueue('c', { key: 'k' })
      return (isFalse ? script.run('c').run('a') : script.run('a').run('c')).facts(LOG)
    },
  ),
  falsely(
    'a record starts too often, and not because its topic is read again from the beginning',
    ['I5', /a was started 4 times, and it has 2 attempts/],
    (script, isFalse) => {
      const runTwice = (): Script => script.claim(['a']).settle('a', 'retry').wait(10).run('a', 'dead')
      script.enqueue('a', { attempts: 2 })
      runTwice()
        .view('a', { attempt: 0 })
        .wait(10)
        .fault({ allows: ['read-again'], types: [isFalse ? 'other' : 'plain'] })
        .wait(10)
        .heal()
      return runTwice().facts(LOG, ['a'])
    },
  ),
  falsely(
    'a job died again after its replay and is not listed, and it is not the record of the replayed letter that was read again',
    ['I9', /the dead letter a is gone, and no entry of the audit says why/],
    (script, isFalse) => {
      const [first, replayed] = [{ runAtMs: 1 }, { runAtMs: 2 }]
      script.enqueue('a').run('a', 'dead', { lease: first }).wait(10).desk('replay', 'a').wait(10)
      script.run('a', 'complete', { lease: replayed }).fault({}).wait(10).heal()
      return script
        .run('a', 'dead', { lease: isFalse ? replayed : first })
        .view('a', { attempt: 0 })
        .facts(LOG, [])
    },
  ),
  falsely(
    'a retry of a record starts early, and no fault kept its delay from being committed',
    ['I11', /a was started \d+ ms before the delay of its retry was over/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'])
      if (isFalse) script.fault({}).heal().wait(20_000)
      script.settle('a', 'retry', { delayMs: 400 }).view('a', { runAtMs: 0 })
      if (!isFalse) script.fault({}).heal()
      return script.wait(10).run('a').facts(LOG)
    },
  ),
  falsely(
    'a job is claimed before its time in a store that can delay jobs',
    ['I11', /a was claimed \d+ ms before it was due, by the store's clock/],
    (script, isFalse) => {
      script.enqueue('a').run('a', 'complete', { lease: { runAtMs: script.wallMs + 100 } })
      return isFalse ? script : script.facts(LOG)
    },
  ),
  falsely(
    'starts of a record are forgotten that were not handed out to be buried alone',
    ['I2', /2 starts of job a were forgotten/],
    (script, isFalse) => {
      const again = { attempt: 1, ...(isFalse ? {} : { isJudged: true as const }) }
      script.enqueue('a').claim(['a']).settle('a', 'dead', { isAnswered: false })
      for (const by of ['second', 'third']) {
        script.wait(10).fault({}).wait(10).heal().wait(2_000)
        script.claim(['a'], { by, lease: again }).settle('a', 'dead', { isAnswered: by === 'third' })
      }
      return script.facts(LOG, ['a'])
    },
  ),
  falsely(
    'a start of a record counts that no claim can have taken',
    ['I2', /a was given as attempt 3 after attempt 1/],
    (script, isFalse) => {
      script.enqueue('a').run('a', 'retry').wait(60)
      if (!isFalse) script.claim([], { by: 'killed', isAnswered: false }).wait(2_000)
      return script.run('a', 'complete', { lease: { attempt: 3 } }).facts(LOG)
    },
  ),
  falsely(
    'a start of a record counts that a claim took in time',
    ['I2', /a was given as attempt 3 after attempt 1/],
    (script, isFalse) => {
      script.enqueue('a').run('a', 'retry').wait(60).fault({})
      script.claim([], { by: 'second', tookMs: isFalse ? 10 : 2_000 }).heal()
      return script.run('a', 'complete', { lease: { attempt: 3 } }).facts(LOG)
    },
  ),
  falsely(
    'a completed record runs again, and no fault struck meanwhile',
    ['I3', /a was handed out again though its outcome 'complete'/],
    (script, isFalse) => {
      script
        .fault({})
        .heal()
        .wait(isFalse ? 6_000 : 0)
      return script
        .enqueue('a')
        .run('a')
        .wait(100)
        .run('a', 'complete', { lease: { attempt: 2 } })
        .facts(LOG)
    },
  ),
  falsely(
    'a late member settles what another has begun',
    ['I3', /the outcome 'complete' of job a by .* was applied \d+ ms after/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a']).begin('a')
      const held = script.holding('a')
      script.note({ what: 'lost', worker: 'worker', id: 'a', token: held.lease.token, reason: 'revoked' }, 'worker')
      if (!isFalse) script.end('a', held)
      script
        .claim(['a'], { by: 'next', lease: { attempt: 2 } })
        .wait(1)
        .begin('a')
        .wait(10)
      if (isFalse) script.end('a', held)
      return script.settle('a', 'complete', { held }).end('a').settle('a', 'complete').facts(LOG)
    },
  ),
  falsely('two starts of a record are forgotten', ['I2', /2 starts of job a were forgotten/], (script, isFalse) => {
    script.enqueue('a')
    for (const [by, attempt] of [
      ['one', 1],
      ['two', 1],
      ['three', isFalse ? 1 : 2],
    ] as const) {
      script.claim(['a'], { by, lease: { attempt } }).wait(5)
      script.note({ what: 'lost', worker: by, id: 'a', token: script.holding('a').lease.token, reason: 'revoked' }, by)
    }
    return script.run('a', 'complete', { by: 'four', lease: { attempt: isFalse ? 2 : 3 } }).facts(LOG)
  }),
  falsely(
    'a record is given with an attempt too many',
    ['I2', /a was given as attempt 3 after attempt 1/],
    (script, isFalse) => {
      script.enqueue('a').run('a', 'retry')
      return script
        .wait(60)
        .run('a', 'complete', { lease: { attempt: isFalse ? 3 : 2 } })
        .facts(LOG)
    },
  ),
]
