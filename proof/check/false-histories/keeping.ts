/** Keys, versions, dependencies, letters and what jobs carry. */
import { type FalseHistory, falsely } from './false-history.ts'

export const keeping: readonly FalseHistory[] = [
  falsely(
    'two live jobs have one key',
    ['I7', /b was stored under the key k while job a was live/],
    (script, isFalse) => {
      script.enqueue('a', { key: 'k' })
      if (!isFalse) script.run('a')
      script.wait(10).enqueue('b', { key: 'k' })
      return (isFalse ? script.run('a') : script).run('b')
    },
  ),
  falsely(
    'a duplicate names a job that had ended',
    ['I7', /the duplicate b of the key k names job a, which had ended before/],
    (script, isFalse) => {
      script.enqueue('a', { key: 'k' })
      if (isFalse) script.run('a')
      script.enqueue('b', { key: 'k' }, { receipt: { id: 'a', status: 'duplicate' } })
      return isFalse ? script : script.run('a')
    },
  ),
  falsely(
    'a duplicate names a job of another key',
    ['I7', /the duplicate b of the key k names job a, which was not stored under that key/],
    (script, isFalse) =>
      script
        .enqueue('a', { key: isFalse ? 'other' : 'k' })
        .enqueue('b', { key: 'k' }, { receipt: { id: 'a', status: 'duplicate' } })
        .run('a'),
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
  falsely('a dead letter is not listed', ['I9', /a is a dead letter and is not listed/], (script, isFalse) =>
    script
      .enqueue('a')
      .run('a', 'dead')
      .facts({}, isFalse ? [] : ['a']),
  ),
  falsely(
    'a job that is no dead letter is listed',
    ['I9', /a is listed as dead letter and is completed/],
    (script, isFalse) =>
      script
        .enqueue('a')
        .run('a')
        .facts({}, isFalse ? ['a'] : []),
  ),
  falsely(
    'of two replays of a letter both succeed',
    ['I9', /2 replays and discards of job a succeeded, and it had died 1 times/],
    (script, isFalse) =>
      script
        .enqueue('a')
        .run('a', 'dead')
        .desk('replay', 'a')
        .desk('replay', 'a', { by: 'second', isDone: isFalse })
        .run('a'),
  ),
  falsely('a replay is not in the audit', ['I9', /the audit has 0 entries of 1: replay by client/], (script, isFalse) =>
    script.enqueue('a').run('a', 'dead').desk('replay', 'a', { isAudited: !isFalse }).run('a'),
  ),
  falsely(
    'an act that was answered with false is in the audit',
    ['I9', /the audit has 1 entries, and 0 acts were done: discard by client/],
    (script, isFalse) => script.enqueue('a').run('a').desk('discard', 'a', { isDone: false, isAudited: isFalse }),
  ),
  falsely(
    'a dead letter that its option removes leaves no entry',
    ['I9', /the dead letter a is gone, and no entry of the audit says why/],
    (script, isFalse) => {
      script
        .enqueue('a', { keepDead: 0 })
        .claim(['a'])
        .settle('a', 'dead', { keep: 0, keepIsOwn: true })
        .view('a', null)
      return isFalse ? script : script.audit('purge', 'a', { who: 'retention', reason: 'more than removeOnFail keeps' })
    },
  ),
  falsely(
    'an entry of the audit has a payload',
    ['I12', /the audit entry 'discard' of job a has its payload/],
    (script, isFalse) => {
      const by = { who: 'client', reason: 'a reason' }
      script.enqueue('a').run('a', 'dead').desk('discard', 'a', { isAudited: false })
      return script.audit('discard', 'a', by, isFalse ? { payload: 'secret' } : { state: 'dead_letter' })
    },
  ),
  falsely(
    'a stored error is too long',
    ['I12', /the stored error of job a is longer than it may be/],
    (script, isFalse) => {
      const error = { name: 'Error', code: null, message: 'x'.repeat(isFalse ? 9_000 : 9), stack: null }
      return script.enqueue('a').run('a', 'dead').view('a', { error })
    },
  ),
  falsely(
    'an error is stored as a text that the store refuses',
    ['I12', /the store was given an error of job a whose text it cannot keep/],
    (script, isFalse) => {
      script.enqueue('a').claim(['a']).wait(1).begin('a').wait(1).end('a')
      if (isFalse) script.settle('a', 'dead', { reason: 'unstorable' })
      return script.settle('a', 'dead')
    },
  ),
  falsely(
    'an older version starts after a newer one',
    ['latest', /a was started after b, a newer version of its latest key/],
    (script, isFalse) => {
      const [older, newer] = isFalse ? [1, 2] : [2, 1]
      script.enqueue('a', { latest: { key: 'k', seq: older } }).enqueue('b', { latest: { key: 'k', seq: newer } })
      return script.run('b').wait(10).run('a')
    },
  ),
  falsely(
    'the newest version is superseded',
    ['latest', /b is superseded, and no newer version/],
    (script, isFalse) => {
      script
        .enqueue('a', { latest: { key: 'k', seq: 1 } })
        .run('a')
        .enqueue('b', { latest: { key: 'k', seq: 2 } })
      if (!isFalse)
        script.enqueue('c', { latest: { key: 'k', seq: 3 } }, { receipt: { id: 'c', status: 'replaced' } }).run('c')
      return script.view('b', { state: 'superseded' })
    },
  ),
  falsely(
    'a version is stale and no newer one is there',
    ['latest', /b was answered as stale, and no newer version was there/],
    (script, isFalse) =>
      script
        .enqueue('a', { latest: { key: 'k', seq: isFalse ? 1 : 3 } })
        .run('a')
        .enqueue('b', { latest: { key: 'k', seq: 2 } }, { receipt: { id: 'b', status: 'stale' } }),
  ),
  falsely(
    'a version replaces one that never was',
    ['latest', /b was answered as replacing another version, and there was none/],
    (script, isFalse) => {
      if (!isFalse) script.enqueue('a', { latest: { key: 'k', seq: null } }).view('a', { state: 'superseded' })
      return script
        .enqueue('b', { latest: { key: 'k', seq: null } }, { receipt: { id: 'b', status: 'replaced' } })
        .run('b')
    },
  ),
  falsely(
    'a job starts before what it comes after',
    ['dependencies', /b was given to worker before job a, which it comes after, was over/],
    (script, isFalse) => {
      script.enqueue('a').enqueue('b', { after: { ids: ['a'], ifDead: 'run' } })
      return isFalse ? script.run('b').run('a') : script.run('a').run('b')
    },
  ),
  falsely(
    'a job that waits for a dead letter is handed out',
    ['dependencies', /b was given to worker before job a/],
    (script, isFalse) =>
      script
        .enqueue('a')
        .enqueue('b', { after: { ids: ['a'], ifDead: isFalse ? 'wait' : 'run' } })
        .run('a', 'dead')
        .run('b'),
  ),
  falsely(
    'a job that dies with another runs',
    ['dependencies', /b ran though job a, which it comes after, had not completed/],
    (script, isFalse) => {
      script
        .enqueue('a')
        .enqueue('b', { after: { ids: ['a'], ifDead: 'die' } })
        .run('a', 'dead')
      return isFalse ? script.run('b') : script.claim(['b']).settle('b', 'dead')
    },
  ),
  falsely(
    'a job is handed out with another payload',
    ['carried', /a was handed out with another payload/],
    (script, isFalse) => {
      script
        .enqueue('a')
        .run('a', 'dead')
        .desk('replay', 'a', isFalse ? {} : { edit: 'edited' })
      return script.run('a', 'complete', { lease: { digest: 'edited' } })
    },
  ),
  falsely(
    'a job is handed out under another tenant',
    ['carried', /a was handed out with another tenant/],
    (script, isFalse) =>
      script.enqueue('a', { tenant: 'one' }).run('a', 'complete', isFalse ? { lease: { tenant: 'two' } } : {}),
  ),
  falsely(
    'a job is handed out with another priority',
    ['carried', /a was handed out with another priority/],
    (script, isFalse) => script.enqueue('a').run('a', 'complete', isFalse ? { lease: { priority: 1 } } : {}),
  ),
  falsely('a job is stored with other attempts', ['carried', /a is stored with 9 attempts, not 3/], (script, isFalse) =>
    script
      .enqueue('a')
      .run('a')
      .view('a', isFalse ? { attempts: 9 } : {}),
  ),
  falsely(
    'a client was told what the contract forbids',
    ['seen', /client saw \(errors\): an enqueue was answered with no code/],
    (script, isFalse) =>
      script.note(
        {
          what: 'seen',
          rule: 'errors',
          job: null,
          isPromised: !isFalse,
          sentence: 'an enqueue was answered with no code',
        },
        'client',
      ),
  ),
]
