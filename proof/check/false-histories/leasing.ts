/** Leases that meet, and outcomes that come too late. */
import { type FalseHistory, falsely } from './false-history.ts'
import { LEASE_MS } from './script.ts'

export const leasing: readonly FalseHistory[] = [
  falsely(
    'two outcomes of one lease are applied',
    ['I3', /2 outcomes of one lease of job a were applied: retry and complete/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'])
      if (isFalse) script.settle('a', 'retry')
      return script.settle('a', 'complete')
    },
  ),
  falsely(
    'an outcome is applied after another was given the job',
    ['I3', /the outcome 'complete' of job a by .* was applied \d+ ms after/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'])
      const held = script.holding('a')
      script
        .wait(LEASE_MS + 100)
        .claim(['a'], { by: 'reaper', from: 'expired' })
        .wait(10)
      script.settle('a', 'complete', { held, ...(!isFalse && { reason: 'expired' }) })
      return script.settle('a', 'dead', isFalse ? { reason: 'expired' } : {})
    },
  ),
  falsely(
    'a completed job is handed out again',
    ['I3', /a was handed out again though its outcome 'complete'/],
    (script, isFalse) => {
      script.enqueue('a').run('a', isFalse ? 'complete' : 'retry')
      return script.wait(100).run('a')
    },
  ),
  falsely(
    'a dead letter is handed out again without a replay',
    ['I3', /a was handed out again though its outcome 'dead'/],
    (script, isFalse) => {
      script.enqueue('a').run('a', 'dead')
      return (isFalse ? script.view('a', { attempt: 0 }) : script.desk('replay', 'a')).run('a')
    },
  ),
  falsely(
    'a letter that was replayed and died again is handed out without another replay',
    ['I3', /a was handed out again though its outcome 'dead'/],
    (script, isFalse) => {
      script.enqueue('a').run('a', 'dead').desk('replay', 'a').run('a', 'dead').wait(10)
      return (isFalse ? script.view('a', { attempt: 1 }) : script.desk('replay', 'a')).run('a')
    },
  ),
  falsely(
    'a completed job is stored as dead',
    ['I3', /a is dead_letter though the last that was applied to it leaves it completed/],
    (script, isFalse) => {
      script.enqueue('a').run('a')
      return isFalse ? script.view('a', { state: 'dead_letter' }) : script
    },
  ),
  falsely(
    'a refused outcome is stored',
    ['I3', /a is completed though the last that was applied/],
    (script, isFalse) => {
      script
        .enqueue('a')
        .claim(['a'])
        .settle('a', 'complete', isFalse ? { reason: 'expired' } : {})
      return script.view('a', { state: 'completed', result: { ok: true } })
    },
  ),
  falsely(
    'another result is stored',
    ['I3', /the stored result of job a is not that of the completion/],
    (script, isFalse) => {
      script.enqueue('a').run('a')
      return isFalse ? script.view('a', { result: { ok: false } }) : script
    },
  ),
  falsely('two leases have one token', ['I4', /two leases of job a have the token once/], (script, isFalse) => {
    script
      .enqueue('a')
      .run('a', 'retry', { lease: { token: 'once' } })
      .wait(60)
    return script.run('a', 'complete', { lease: { token: isFalse ? 'once' : 'twice' } })
  }),
  falsely(
    'a job is given to another while its holder has it',
    ['I4', /a was given to other while worker held the same job/],
    (script, isFalse) => {
      script
        .enqueue('a')
        .claim(['a'])
        .wait(isFalse ? 100 : LEASE_MS)
      return script.claim(['a'], { by: 'other' }).settle('a', 'complete')
    },
  ),
  falsely(
    'a replay of a job that is held lets another have it',
    ['I4', /a was given to other while worker held the same job/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a']).wait(50)
      const held = script.holding('a')
      if (!isFalse) script.settle('a', 'dead')
      script
        .desk('replay', 'a')
        .claim(['a'], { by: 'other', lease: { attempt: 1 } })
        .settle('a', 'complete')
      return isFalse
        ? script.settle('a', 'dead', { held, reason: 'expired' }).view('a', { state: 'completed' })
        : script
    },
  ),
  falsely(
    'a handler begins under a lease that no claim gave',
    ['I4', /worker had no lease from a claim, and began job a/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'])
      const { token } = script.holding('a').lease
      script.note({ what: 'begin', id: 'a', attempt: 1, token: isFalse ? 'another' : token }, 'worker')
      return script.settle('a', 'complete')
    },
  ),
  falsely(
    'two handlers begin under one lease',
    ['I4', /worker used one lease twice to begin job a/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a']).begin('a')
      return (isFalse ? script.begin('a') : script).end('a').settle('a', 'complete')
    },
  ),
  falsely(
    'an outcome of a lease that no claim gave is applied',
    ['I4', /worker had no lease from a claim, and settled job a/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'])
      const { lease, ...held } = script.holding('a')
      const strange = { ...held, lease: { ...lease, token: 'another' } }
      return script
        .settle('a', 'complete', { held: strange, ...(!isFalse && { reason: 'expired' }) })
        .settle('a', 'complete')
    },
  ),
  falsely(
    'a fault excuses a second lease only if it sets a clock',
    ['I4', /a was given to other while worker held/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a']).wait(50)
      script
        .fault(isFalse ? {} : { allows: ['wall-clock'] })
        .wait(50)
        .heal()
      return script.claim(['a'], { by: 'other' }).settle('a', 'complete')
    },
  ),
  falsely(
    'two versions of a latest key are in flight',
    ['I4', /b was given to other while worker held a, of the same latest key/],
    (script, isFalse) => {
      script.enqueue('a', { latest: { key: 'k', seq: 1 } }).claim(['a'])
      const held = script.holding('a')
      script.wait(10).enqueue('b', { latest: { key: 'k', seq: 2 } })
      if (!isFalse) script.settle('a', 'complete', { held })
      script.claim(['b'], { by: 'other' })
      if (isFalse) script.settle('a', 'complete', { held })
      return script.settle('b', 'complete')
    },
  ),
  falsely(
    'progress is taken after the job was given to another',
    ['progress', /progress of job a was taken after it had been given to reaper/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'])
      const { token } = script.holding('a').lease
      script
        .wait(LEASE_MS + 100)
        .claim(['a'], { by: 'reaper', from: 'expired' })
        .wait(5)
      script.call(
        { what: 'report', worker: 'worker', id: 'a', token },
        { what: 'reported', isHeld: isFalse },
        { by: 'worker' },
      )
      return script.settle('a', 'dead')
    },
  ),
  falsely(
    'progress is taken after the lease was lost',
    ['progress', /progress of job a was taken after its lease had been lost/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a'])
      const { token } = script.holding('a').lease
      script.cancel('a').note({ what: 'lost', worker: 'worker', id: 'a', token, reason: 'cancelled' }, 'worker')
      return script
        .wait(1)
        .call(
          { what: 'report', worker: 'worker', id: 'a', token },
          { what: 'reported', isHeld: isFalse },
          { by: 'worker' },
        )
    },
  ),
  falsely(
    'progress is taken after the job was settled',
    ['progress', /progress of job a was taken after its lease had been settled/],
    (script, isFalse) => {
      script.enqueue('a').run('a').wait(5)
      const { token } = script.holding('a').lease
      return script.call(
        { what: 'report', worker: 'worker', id: 'a', token },
        { what: 'reported', isHeld: isFalse },
        { by: 'worker' },
      )
    },
  ),
]
