import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blank } from './blank.ts'
import { places, sourceFiles } from './source.ts'

/** The only file that may read the hour or start a timer. Everything else takes a Clock, so that tests own the time (I11). */
const CLOCK = 'src/time/clock.ts'

const READS_TIME =
  /\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date\b(?!\s*\()|(?<!new )\bDate\(|\bperformance\b|\bhrtime\b|\bprocess\.uptime\b/
const STARTS_TIMER = /\bsetTimeout\b|\bsetInterval\b|\bAbortSignal\.timeout\b|\bscheduler\.wait\b/

// X022
test('time is read and waited for through the Clock alone', () => {
  const files = sourceFiles(['src'], { tests: false }).filter(({ path }) => path !== CLOCK)
  assert.ok(files.length > 50)
  const found = files.flatMap((file) => [...places(file, READS_TIME), ...places(file, STARTS_TIMER)])
  assert.deepEqual(found, [])
})

test('the law knows every way round the Clock, and leaves conversions alone', () => {
  const fresh = ['Date.now()', 'new Date()', 'new Date', 'Date()', 'performance.now()', 'process.hrtime.bigint()']
  for (const text of fresh) assert.match(blank(text), READS_TIME, text)
  for (const text of ['setTimeout(run, 5)', 'setInterval(run, 5)', 'AbortSignal.timeout(5)']) {
    assert.match(blank(text), STARTS_TIMER, text)
  }
  const lawful = [
    'new Date(ms).toISOString()',
    'Date.UTC(2026, 0, 1)',
    'Date.parse(text)',
    'at?: Date',
    'setImmediate(run)',
  ]
  for (const text of [...lawful, '// Date.now()', "'new Date()'", 'toDate()', 'instanceof Date ?']) {
    assert.doesNotMatch(blank(text), READS_TIME, text)
    assert.doesNotMatch(blank(text), STARTS_TIMER, text)
  }
})

test('the clock is where the law says', () => {
  const [clock] = sourceFiles(['src/time'], { tests: false }).filter(({ path }) => path === CLOCK)
  assert.ok(clock)
  assert.ok(places(clock, READS_TIME).length > 0 && places(clock, STARTS_TIMER).length > 0)
})
