import assert from 'node:assert/strict'
import { diagnose } from '../../../src/engine/capability-checks.ts'
import type { CaseFile } from '../../case.ts'
import { diagnosis, need, reaping } from '../../needs.ts'
import { idsOf } from '../../stage.ts'

export const diagnosing: CaseFile = {
  level: 'port',
  concept: 'Diagnosis',
  cases: [
    {
      name: 'a diagnosis names what it looked at, and says what to do about all that is not in order',
      guarantees: ['I10'],
      ...need(diagnosis),
      async run(stage) {
        const { id } = await stage.put()
        const findings = await diagnose(stage.engine, { deep: true })
        assert.ok(findings.length > 0, 'nothing was looked at')
        for (const { severity, subject, detail, advice } of findings) {
          assert.ok(subject !== '' && detail !== '')
          assert.equal(advice === null, severity === 'ok', `${subject}: ${detail}`)
          assert.notEqual(advice, '')
        }
        assert.deepEqual(idsOf(await stage.take(await stage.consume())), [id], 'looking changed the queue')
      },
    },
    {
      name: 'a diagnosis finds a lease that ran out longer ago than recovery takes',
      guarantees: ['I6'],
      ...need(diagnosis, reaping),
      async run(stage) {
        const errors = async (): Promise<number> =>
          (await diagnose(stage.engine)).filter(({ severity }) => severity === 'error').length
        await stage.put()
        await stage.one(await stage.consume())
        const before = await errors()
        await stage.harness.advance(stage.leaseMs + (stage.engine.capabilities.recoveryMaxMs ?? 0) + 1_000)
        assert.equal(await errors(), before + 1)
      },
    },
  ],
}
