/** Keys, versions, dependencies and what jobs carry. */
import { type FalseHistory, falsely } from './false-history.ts'
import type { Script } from './script.ts'

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
      script.enqueue('a', { latest: { key: 'k', seq: 1 } })
      if (!isFalse) script.run('a')
      script
        .enqueue('b', { latest: { key: 'k', seq: 2 } })
        .run('b')
        .wait(10)
      return isFalse ? script.run('a') : script
    },
  ),
  falsely(
    'an older version starts after a newer one was stored',
    ['latest', /a was given to worker after b, a newer version of its latest key, was stored/],
    (script, isFalse) => {
      script.enqueue('a', { latest: { key: 'k', seq: null } })
      if (!isFalse) script.run('a')
      script.enqueue('b', { latest: { key: 'k', seq: null } })
      return (isFalse ? script.wait(10).run('a') : script).wait(10).run('b')
    },
  ),
  falsely(
    'a version without a number is stale',
    ['latest', /b was answered as stale, and no newer version was there/],
    (script, isFalse) =>
      script
        .enqueue('a', { latest: { key: 'k', seq: 3 } })
        .run('a')
        .enqueue('b', { latest: { key: 'k', seq: isFalse ? null : 2 } }, { receipt: { id: 'b', status: 'stale' } }),
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
    'a job that waits for a letter is handed out before its option removes the letter',
    ['dependencies', /b was given to worker before job a/],
    (script, isFalse) => {
      script.enqueue('a', { keepDead: 0 }).enqueue('b', { after: { ids: ['a'], ifDead: 'wait' } })
      const die = (): Script =>
        script
          .claim(['a'])
          .settle('a', 'dead', { keep: 0, keepIsOwn: true })
          .view('a', null)
          .audit('purge', 'a', { who: 'retention', reason: 'more than removeOnFail keeps' })
      if (!isFalse) die()
      script.wait(10).run('b').wait(10)
      return isFalse ? die() : script
    },
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
