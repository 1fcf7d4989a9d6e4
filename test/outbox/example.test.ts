import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT, startScript, temporaryFolder } from '../cli/run.ts'
import { freshName, kafkaServer } from '../servers/kafka.ts'

test('the example ships what was committed, and what was rolled back never arrives', async (t) => {
  const { url } = await kafkaServer()
  const target = `${url}?group=${freshName('shop')}&prefix=${freshName('shop')}.`
  const cwd = await temporaryFolder(t)
  const { code, out, err } = await startScript(t, join(ROOT, 'examples/outbox/main.ts'), [target], { cwd }).ended
  assert.equal(err, '')
  assert.equal(out, 'lamp was not ordered: UNIQUE constraint failed: orders.article\nshipped lamp\n')
  assert.equal(code, 0)
})
