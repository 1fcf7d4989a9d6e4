/** Jobs that are lost, appear from nowhere, or are stored in part. */
import { type FalseHistory, falsely } from './false-history.ts'
import type { Script } from './script.ts'
import { askedJob } from './scripted-job.ts'

/** Until so long afterwards that nothing is excused any more. */
function empty(script: Script): void {
  script
    .wait(10)
    .fault({ allows: ['lose-all'] })
    .wait(10)
    .heal()
    .wait(6_000)
}

export const losing: readonly FalseHistory[] = [
  falsely(
    'an acknowledged job is gone after it completed',
    ['I1', /a was acknowledged and is gone, and nothing/],
    (script, isFalse) => {
      script.enqueue('a').run('a')
      return isFalse ? script.view('a', null) : script
    },
  ),
  falsely(
    'an acknowledged job is gone before it ever ran',
    ['I1', /a was acknowledged and is gone, and it had never finished/],
    (script, isFalse) => script.enqueue('a', {}, { isAnswered: !!isFalse }).view('a', null),
  ),
  falsely(
    'an emptied store excuses what was there, not what came later',
    ['I1', /a was acknowledged and is gone/],
    (script, isFalse) => {
      if (!isFalse) script.enqueue('a').run('a')
      empty(script)
      if (isFalse) script.enqueue('a').run('a')
      return script.view('a', null)
    },
  ),
  falsely(
    'a job of another program is lost, and its id is not that of an earlier one in a store that was emptied',
    ['I1', /other later was acknowledged and is gone/],
    (script, isFalse) => {
      const stored = (digest: string): void => {
        const foreign = { what: 'foreign', job: askedJob('', { type: 'other', digest }), program: 'program' } as const
        script
          .note(foreign)
          .wait(1)
          .note({ ...foreign, isStored: true })
      }
      stored('earlier')
      script.claim(['1'], { lease: { type: 'other', digest: 'earlier' } }).settle('1', 'complete')
      empty(script)
      stored('later')
      if (!isFalse) script.claim(['1'], { lease: { type: 'other', digest: 'later' } }).settle('1', 'complete')
      return script.view('1', null)
    },
  ),
  falsely(
    'a file that was deleted takes jobs after it should have been noticed',
    ['I1', /a was acknowledged and is gone/],
    (script, isFalse) =>
      script
        .fault({ allows: ['lose-all'], undoesForMs: 500 })
        .wait(isFalse ? 600 : 400)
        .enqueue('a')
        .run('a')
        .wait(1_000)
        .heal()
        .view('a', null),
  ),
  falsely(
    'a failover excuses what is recent, and nothing older',
    ['I1', /a was acknowledged and is gone/],
    (script, isFalse) => {
      script
        .enqueue('a')
        .run('a')
        .wait(isFalse ? 5_000 : 100)
      return script
        .fault({ allows: ['lose-recent'], recentMs: 1_000 })
        .wait(100)
        .heal()
        .view('a', null)
    },
  ),
  falsely(
    'a server that was only restarted excuses no loss',
    ['I1', /a was acknowledged and is gone/],
    (script, isFalse) => {
      script.enqueue('a').run('a')
      return script
        .fault(isFalse ? {} : { allows: ['lose-all'] })
        .wait(100)
        .heal()
        .view('a', null)
    },
  ),
  falsely(
    'a job is started that was never enqueued',
    ['I1', /ghost was started, and was never enqueued/],
    (script, isFalse) => {
      if (!isFalse) script.enqueue('ghost')
      return script.claim(['ghost']).settle('ghost', 'complete')
    },
  ),
  falsely(
    'a job of a transaction that was rolled back runs',
    ['I1', /a is there though the transaction/],
    (script, isFalse) => {
      script.batch([['a', {}]], { transaction: 't' })
      if (!isFalse) script.note({ what: 'transaction', transaction: 't', end: 'committing' }, 'client')
      script.note({ what: 'transaction', transaction: 't', end: isFalse ? 'rolled-back' : 'committed' }, 'client')
      return script.run('a')
    },
  ),
  falsely(
    'a job of a transaction whose commit was never tried is stored',
    ['I1', /a is there though the transaction/],
    (script, isFalse) => {
      script.batch([['a', {}]], { transaction: 't' })
      if (!isFalse) script.note({ what: 'transaction', transaction: 't', end: 'committing' }, 'client')
      return script.run('a')
    },
  ),
  falsely(
    'of a transaction without an answer one job is there',
    ['I1', /of a batch of 2 jobs 1 were stored and job b/],
    (script, isFalse) => {
      const stored = isFalse ? ['a'] : ['a', 'b']
      script.batch([['a', {}]], { transaction: 't', stored }).batch([['b', {}]], { transaction: 't', stored })
      script.note({ what: 'transaction', transaction: 't', end: 'committing' }, 'client').run('a')
      return isFalse ? script : script.run('b')
    },
  ),
  falsely(
    'of a batch without an answer one job is missing',
    ['I1', /of a batch of 3 jobs 2 were stored and job c was not/],
    (script, isFalse) => {
      const stored = isFalse ? ['a', 'b'] : ['a', 'b', 'c']
      script.batch(
        [
          ['a', {}],
          ['b', {}],
          ['c', {}],
        ],
        { isAnswered: false, stored },
      )
      for (const id of stored) script.run(id)
      return script
    },
  ),
  falsely('a job is cancelled without a cancel', ['I1', /a is cancelled, and no call/], (script, isFalse) => {
    script.enqueue('a')
    return isFalse ? script.view('a', { state: 'cancelled' }) : script.cancel('a')
  }),
  falsely(
    'a sweep that only counted is no reason to be gone',
    ['I1', /a was acknowledged and is gone, and nothing/],
    (script, isFalse) => {
      script.enqueue('a').run('a').wait(100)
      const rules = [{ what: 'completed', beforeMs: script.wallMs } as const]
      return script.call({ what: 'sweep', rules, isDryRun: isFalse }, { what: 'swept', removed: 1 }).view('a', null)
    },
  ),
  falsely(
    'a sweep takes what had finished only after its time',
    ['I1', /a was acknowledged and is gone, and nothing/],
    (script, isFalse) => {
      const beforeMs = script.wallMs
      script.enqueue('a').wait(500).run('a').wait(500)
      const rules = [{ what: 'completed', beforeMs: isFalse ? beforeMs : script.wallMs } as const]
      return script.call({ what: 'sweep', rules, isDryRun: false }, { what: 'swept', removed: 1 }).view('a', null)
    },
  ),
  falsely(
    'a clock that was set long before a sweep is no reason to be gone',
    ['I1', /a was acknowledged and is gone, and nothing/],
    (script, isFalse) => {
      const beforeMs = script.wallMs
      const set = (): Script =>
        script
          .fault({ allows: ['wall-clock'] })
          .wait(10)
          .heal()
      if (isFalse) set().wait(10_000)
      script.enqueue('a').run('a').wait(10)
      if (!isFalse) set()
      const rules = [{ what: 'completed', beforeMs } as const]
      return script.call({ what: 'sweep', rules, isDryRun: false }, { what: 'swept', removed: 1 }).view('a', null)
    },
  ),
  falsely(
    'a job whose enqueue was refused is stored',
    ['I10', /a is in the store though its enqueue was refused/],
    (script, isFalse) => {
      script.enqueue('a').cancel('a')
      const { history, ...rest } = script.facts()
      const refused = { what: 'failed', code: 'ERR_UNSUPPORTED', message: 'it cannot', isRefusal: true } as const
      const entries = history.filter(({ what }) => what !== 'cancel' && what !== 'cancelled')
      const told = entries.map((entry) => (entry.what === 'enqueued' ? { ...entry, ...refused } : entry))
      return { history: isFalse ? told : history, ...rest }
    },
  ),
  falsely(
    'a job that was answered as stale is started',
    ['I10', /b was started though it was answered as stale/],
    (script, isFalse) => {
      script.enqueue('a', { latest: { key: 'k', seq: 2 } }).run('a')
      if (!isFalse) return script
      return script
        .enqueue('b', { latest: { key: 'k', seq: 1 } }, { receipt: { id: 'b', status: 'stale' } })
        .claim(['b'])
    },
  ),
]
