import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseUrl } from '../../src/engines/kafka/index.ts'
import { silentLog } from '../../src/observe/log.ts'
import { systemClock } from '../../src/time/clock.ts'
import { preset } from './preset.ts'

test('on a secure cluster every worker has the login, and the examples that are printed have none', async () => {
  const engine = 'kafkas://worker:geheim%2Fnis@broker:9093?sasl=scram-sha-512&ca=/etc/ca.pem'
  const { workers, examples } = await preset.open({
    ...{ engine, config: null, instance: 1, record: () => {}, log: silentLog, clock: systemClock },
  })
  assert.equal(workers.length, 7)
  for (const worker of workers) {
    const { security, group } = parseUrl(worker.engine)
    assert.deepEqual([security.sasl?.mechanism, security.tls?.ca], ['scram-sha-512', '/etc/ca.pem'], group)
    assert.ok(security.sasl?.mechanism === 'scram-sha-512' && security.sasl.password === 'geheim/nis')
  }
  assert.doesNotMatch(JSON.stringify(examples), /geheim/)
})
