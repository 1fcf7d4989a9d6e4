/** Starts that are counted wrongly, leases that meet, outcomes that come too late. */
import { type FalseHistory, falsely } from './false-history.ts'
import { LEASE_MS } from './script.ts'

export const leasing: readonly FalseHistory[] = [
  falsely(
    'a retry counts nothing',
    ['I2', /given as attempt 1; by its claims and releases it had to be 2 or more/],
    (script, isFalse) =>
      script
        .enqueue('a')
        .run('a', 'retry')
        .wait(60)
        .run('a', 'complete', isFalse ? { lease: { attempt: 1 } } : {}),
  ),
  falsely('a release counts', ['I2', /given as attempt 2; .* had to be 1 at most/], (script, isFalse) =>
    script
      .enqueue('a')
      .run('a', 'release')
      .wait(60)
      .run('a', 'complete', isFalse ? { lease: { attempt: 2 } } : {}),
  ),
  falsely(
    'a start counts that no claim can have taken',
    ['I2', /given as attempt 2; .* had to be 1 at most/],
    (script, isFalse) => {
      script.enqueue('a')
      // A claim without an answer may have had it, and its lease ran out.
      if (!isFalse) script.claim([], { by: 'killed', isAnswered: false }).wait(2_000)
      return script.run('a', 'complete', { lease: { attempt: 2 } })
    },
  ),
  falsely(
    'a replayed job does not begin again',
    ['I2', /given as attempt 2; .* had to be 1 at most/],
    (script, isFalse) =>
      script
        .enqueue('a')
        .run('a', 'dead')
        .desk('replay', 'a')
        .run('a', 'complete', isFalse ? { lease: { attempt: 2 } } : {}),
  ),
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
    'a dead letter is handed out again and nobody replayed it',
    ['I3', /a was handed out again though its outcome 'dead'/],
    (script, isFalse) => {
      script.enqueue('a').run('a', 'dead')
      return (isFalse ? script.view('a', { attempt: 0 }) : script.desk('replay', 'a')).run('a')
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
    'a fault that lets settled work run again excuses no second lease',
    ['I4', /a was given to other while worker held/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a']).wait(50)
      script
        .fault({ allows: isFalse ? ['repeat'] : ['wall-clock'] })
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
    'a job starts once more than it may',
    ['I5', /attempt 3 of job a was started, and it has 2/],
    (script, isFalse) => {
      script.enqueue('a', { attempts: isFalse ? 2 : 3 })
      return script.run('a', 'retry').wait(60).run('a', 'retry').wait(60).run('a', 'dead')
    },
  ),
  falsely(
    'a job starts too often under numbers that hide it',
    ['I5', /a was started 2 times, and it has 1 attempts/],
    (script, isFalse) => {
      script
        .enqueue('a', { attempts: 1 })
        .run('a', isFalse ? 'retry' : 'release')
        .wait(60)
      return script.run('a', 'complete', { lease: { attempt: 1 } })
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
