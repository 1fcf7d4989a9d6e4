import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { altered } from '../alter.ts'
import { memoryHarness } from '../engines/memory.ts'
import { runCases } from '../run.ts'
import { casesOf } from '../table.ts'
import { mutants } from './index.ts'

/** Every case but the one that is there for its sheer size. */
const cases = casesOf('port').filter(({ name }) => !name.startsWith('ten thousand jobs'))
/** A flaw may hang a case; virtual time makes the sound ones last milliseconds. */
const CASE_MS = 1_500
const GRACE_MS = 400

describe('the suite fails every wrong engine', () => {
  it('passes the right one that they are made of', async () => {
    const right = altered(
      () => memoryHarness(),
      () => ({}),
    )
    // It has all the time that a busy machine may need: the short times are for those that hang.
    const failed = (await runCases(right, cases)).filter(({ status }) => status === 'failed')
    assert.deepEqual(failed, [])
  })

  for (const mutant of mutants) {
    it(mutant.flaw, async (context) => {
      const results = await runCases(
        altered(() => memoryHarness(), mutant.alter),
        cases,
        { caseMs: CASE_MS, graceMs: GRACE_MS },
      )
      const killers = results.filter(({ status }) => status === 'failed').map(({ name }) => name)
      assert.ok(killers.length > 0, 'the suite passed a wrong engine')
      assert.ok(killers.includes(mutant.killer), `killed, but not by '${mutant.killer}'; by: ${killers.join('; ')}`)
      context.diagnostic(`killed by ${killers.length} cases, such as '${mutant.killer}'`)
    })
  }
})
