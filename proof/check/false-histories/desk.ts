/** Dead letters, and what the audit has of them. */
import { type FalseHistory, falsely } from './false-history.ts'

export const desk: readonly FalseHistory[] = [
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
    'a purge is in the audit that nothing asked for',
    ['I9', /the audit has 1 entries, and 0 acts were done: purge by retention/],
    (script, isFalse) => {
      script.enqueue('a').run('a', 'dead').wait(100)
      const rules = [{ what: isFalse ? 'completed' : 'dead', beforeMs: script.wallMs } as const]
      script.call({ what: 'sweep', rules, isDryRun: false }, { what: 'swept', removed: 1 })
      script.audit('purge', 'a', { who: 'retention', reason: 'older than is kept' })
      return isFalse ? script : script.view('a', null)
    },
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
]
