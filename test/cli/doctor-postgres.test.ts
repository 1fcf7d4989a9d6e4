import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate } from '../../src/engines/postgres/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'
import { runCli } from './in-process.ts'
import { jsonLines } from './run.ts'

test('millrace doctor examines Postgres, and exits 1 while something is an error', async (t) => {
  const { url, schema } = schemaUrl(await postgresServer())
  const absent = await runCli(['doctor', '--engine', url])
  assert.equal(absent.code, 1)
  assert.match(absent.err, /millrace migrate.*ERR_SCHEMA_MISSING/)
  await migrate(url, { clock: systemClock, migrate: true })
  t.after(() => dropSchema(url, schema))
  await query(url, `drop index ${schema}.idx_jobs_live_key`)
  const { code, out } = await runCli(['doctor', '--json', '--engine', url])
  assert.equal(code, 1)
  const findings = jsonLines(out)
  assert.ok(findings.length > 10)
  assert.ok(
    findings.some(
      ({ severity, detail, advice }) =>
        severity === 'error' &&
        /idx_jobs_live_key is missing/.test(String(detail)) &&
        /CREATE UNIQUE/.test(String(advice)),
    ),
  )
})
