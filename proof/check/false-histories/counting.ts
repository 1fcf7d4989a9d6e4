/** Starts that are counted wrongly. */
import { type FalseHistory, falsely } from './false-history.ts'
import { LEASE_MS } from './script.ts'

export const counting: readonly FalseHistory[] = [
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
    'a start counts that only a claim for other types can have taken',
    ['I2', /given as attempt 2; .* had to be 1 at most/],
    (script, isFalse) => {
      script.enqueue('a')
      const types = [{ type: isFalse ? 'other' : 'plain', leaseMs: LEASE_MS }]
      script.call({ what: 'consume', worker: 'killed', types }, { what: 'consuming' }, { by: 'killed' })
      script.call(
        { what: 'claim', worker: 'killed', max: 1, waitMs: 0, from: 'ready' },
        { what: 'claimed', leases: [] },
        { by: 'killed', isAnswered: false },
      )
      return script.wait(2_000).run('a', 'complete', { lease: { attempt: 2 } })
    },
  ),
  falsely(
    'a start counts that only a reaper can have taken',
    ['I2', /given as attempt 2; .* had to be 1 at most/],
    (script, isFalse) => {
      script.enqueue('a').claim([], { by: 'killed', isAnswered: false, from: isFalse ? 'expired' : 'ready' })
      return script.wait(2_000).run('a', 'complete', { lease: { attempt: 2 } })
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
    'a job starts once more than it may',
    ['I5', /attempt 3 of job a was started, and it has 2/],
    (script, isFalse) => {
      script.enqueue('a', { attempts: isFalse ? 2 : 3 })
      return script.run('a', 'retry').wait(60).run('a', 'retry').wait(60).run('a', 'dead')
    },
  ),
  falsely('the last attempt is retried', ['I5', /attempt 2 of job a is retried, and it has 2/], (script, isFalse) => {
    script.enqueue('a', { attempts: 2 }).run('a', 'retry').wait(60)
    return isFalse ? script.run('a', 'retry').wait(60).cancel('a') : script.run('a', 'dead')
  }),
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
]
