/** Finished jobs that go or stay against what was asked for. */
import { type FalseHistory, falsely } from './false-history.ts'

export const removing: readonly FalseHistory[] = [
  falsely(
    'a job goes though fewer than its number have finished after it',
    ['removal', /a is gone, and only 0 of its type had finished after it, not 1/],
    (script, isFalse) => {
      script
        .enqueue('a', { keepCompleted: 1 })
        .claim(['a'])
        .settle('a', 'complete', { keep: 1, keepIsOwn: true })
        .wait(5)
      if (!isFalse)
        script.enqueue('b', { keepCompleted: 1 }).claim(['b']).settle('b', 'complete', { keep: 1, keepIsOwn: true })
      return script.view('a', null)
    },
  ),
  falsely(
    'a dead letter goes though fewer than its number have died after it, and it was not replayed',
    ['removal', /a is gone, and only 0 of its type had finished after it, not 1/],
    (script, isFalse) => {
      const keep = { keepCompleted: 1, keepDead: 1 }
      const kept = { keep: 1, keepIsOwn: true }
      script.enqueue('a', keep).claim(['a']).settle('a', 'dead', kept).wait(5)
      if (!isFalse) script.desk('replay', 'a').claim(['a']).settle('a', 'complete', kept).wait(5)
      script.enqueue('b', keep).claim(['b']).settle('b', 'complete', kept)
      return script.view('a', null).audit('purge', 'a', { who: 'retention', reason: 'more than removeOnFail keeps' })
    },
  ),
  falsely(
    'a job stays that was to go at once',
    ['removal', /a was to be removed as soon as it had finished, and is there/],
    (script, isFalse) => {
      script.enqueue('a', { keepCompleted: 0 }).claim(['a']).settle('a', 'complete', { keep: 0, keepIsOwn: true })
      return isFalse ? script : script.view('a', null)
    },
  ),
  falsely(
    'a job stays that was to go at once, and no other comes after a duplicate of it',
    ['removal', /a was to be removed as soon as it had finished, and is there/],
    (script, isFalse) => {
      const after = isFalse ? {} : { after: { ids: ['b'], ifDead: 'wait' } as const }
      script
        .enqueue('a', { keepCompleted: 0, key: 'k' })
        .batch(
          [
            ['b', { key: 'k' }],
            ['c', after],
          ],
          { duplicates: { b: 'a' } },
        )
        .claim(['a'])
        .settle('a', 'complete', { keep: 0, keepIsOwn: true })
      return script.run('c')
    },
  ),
  falsely(
    'more jobs stay than their type keeps',
    ['removal', /3 finished jobs of type 'plain' are there, and it keeps 2/],
    (script, isFalse) => {
      for (const id of ['a', 'b', 'c']) script.enqueue(id).claim([id]).settle(id, 'complete', { keep: 2 }).wait(2)
      return isFalse ? script : script.view('a', null)
    },
  ),
  falsely(
    'a job that was told to stay goes',
    ['I1', /a was acknowledged and is gone, and nothing/],
    (script, isFalse) => {
      script
        .enqueue('a', isFalse ? { keepCompleted: null } : {})
        .claim(['a'])
        .settle('a', 'complete', { keep: 1 })
        .wait(2)
      return script.enqueue('b').claim(['b']).settle('b', 'complete', { keep: 1 }).view('a', null)
    },
  ),
]
