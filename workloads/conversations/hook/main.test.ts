/** The built hook as a process: what it stores, and what it does about everything that can go wrong. */
import assert from 'node:assert/strict'
import { globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { type HookRun, hookRig } from '../../../test/fixtures/hook.ts'
import { openDatabase } from '../store/database.ts'
import { CONTENT_MAX } from './capture.ts'
import { toConversationId } from './input.ts'
import { takeInSpool } from './intake.ts'

const RAW = 'john.smith@example.com'
/** Twice what it may take on a quiet machine; the whole suite runs beside this test. */
const BOUND_MS = 4_000

const rig = await hookRig()

function rowsOf(file: string, sql: string) {
  const database = new DatabaseSync(file, { timeout: 5_000 })
  try {
    return database
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }))
  } finally {
    database.close()
  }
}

const contents = (file: string) =>
  rowsOf(file, 'SELECT content FROM messages ORDER BY conversation_id, seq').map(({ content }) => content)
const spooled = (file: string) =>
  statSync(`${file}.spool`, { throwIfNoEntry: false }) ? readdirSync(`${file}.spool`) : []
const at = (file: string) => ({ env: { MILLRACE_ENGINE: `sqlite:${file}` } })

async function takeIn(file: string) {
  const database = openDatabase(file, { nowMs: Date.now() })
  try {
    return await takeInSpool({ database, home: rig.home })
  } finally {
    database.close()
  }
}

/** It ended with 0 in time, printed nothing that an assistant would read, and said at most one line per fault. */
function assertHarmless({ code, stdout, stderr, tookMs }: HookRun, said: RegExp | null): void {
  assert.equal(code, 0, stderr)
  assert.equal(stdout, '')
  assert.ok(tookMs < BOUND_MS, `${tookMs} ms`)
  if (said === null) assert.equal(stderr, '')
  else assert.match(stderr, said)
  assert.doesNotMatch(stderr, /john|smith|Warning/)
}

// B11 B14 B15 B183
test('a prompt is stored sanitised, with one job, and nothing on the disk has the raw text', async () => {
  const file = rig.next()
  const run = await rig.prompt(`write to ${RAW} about the build`, at(file))
  assertHarmless(run, null)
  assert.deepEqual(contents(file), ['write to [EMAIL] about the build'])
  const jobs = rowsOf(file, 'SELECT type, status, payload FROM job_queue')
  assert.equal(jobs.length, 1)
  assert.equal(jobs[0]?.type, 'sanitize_ai_validation')
  assert.equal(JSON.parse(String(jobs[0]?.payload)).conversation_id, toConversationId('a session'))
  assert.deepEqual(rig.filesWith(RAW), [])
})

test('the default database is in the home folder, for its owner only, and --engine takes precedence', async () => {
  const [ignored, used] = [rig.next(), rig.next()]
  assertHarmless(await rig.prompt(`hello ${RAW}`), null)
  const file = path.join(rig.home, '.millrace/conversations.db')
  assert.equal(statSync(path.dirname(file)).mode & 0o777, 0o700)
  const made = globSync(`${file}*`)
  assert.deepEqual(made.map((name) => name.slice(file.length)).sort(), ['', '-shm', '-wal', '.secret'])
  for (const name of made) assert.equal(statSync(name).mode & 0o777, 0o600, name)
  assert.deepEqual(contents(file), ['hello [EMAIL]'])
  assertHarmless(await rig.prompt('one', { ...at(ignored), args: ['--engine', `sqlite:${used}`] }), null)
  assertHarmless(await rig.prompt('two', { ...at(ignored), args: [`--engine=sqlite:${used}`] }), null)
  assert.deepEqual([contents(used), readdirSync(path.dirname(ignored))], [['one', 'two'], []])
})

// B09
test('the built file loads no module that could reach a network or start a process, and is one small file', () => {
  const text = readFileSync(rig.file, 'utf8')
  const loaded = [...text.matchAll(/(?:require|getBuiltinModule|import)\(\\?"([^"\\]+)\\?"\)/g)].map(([, name]) => name)
  assert.deepEqual([...new Set(loaded)].sort(), [
    'node:crypto',
    'node:fs',
    'node:os',
    'node:path',
    'node:sqlite',
    'node:vm',
  ])
  assert.doesNotMatch(text, /\bfetch\(|WebSocket|EventSource/)
  assert.ok(text.startsWith('#!/usr/bin/env node\n'))
  assert.ok(text.length < 150_000, `${text.length} characters`)
})

// B195
test('while another process holds the lock, the message waits in the spool and is taken in once', async () => {
  const file = rig.next()
  assertHarmless(await rig.prompt('first', at(file)), null)
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const run = await rig.prompt(`second ${RAW}`, at(file))
  other.exec('ROLLBACK')
  other.close()
  assertHarmless(run, /^millrace-hook: SQLite: .*held the write lock too long.*; the message waits in the spool.*\n$/)
  assert.equal(spooled(file).length, 1)
  // The order is kept: what follows a waiting message waits too.
  assertHarmless(await rig.prompt('third', at(file)), /earlier messages wait in the spool/)
  assert.deepEqual(rig.filesWith(RAW), [])
  assert.deepEqual(await takeIn(file), { takenIn: 2, known: 0, unreadable: [] })
  assertHarmless(await rig.prompt('fourth', at(file)), null)
  assert.deepEqual(contents(file), ['first', 'second [EMAIL]', 'third', 'fourth'])
  assert.deepEqual(await takeIn(file), { takenIn: 0, known: 0, unreadable: [] })
})

// X128
test('findings of a spooled message have the hashes that they would have had', async () => {
  const file = rig.next()
  await rig.prompt(RAW, at(file))
  mkdirSync(`${file}.spool`)
  writeFileSync(`${file}.spool/0.json`, '')
  await rig.prompt(RAW, at(file))
  assert.equal((await takeIn(file)).takenIn, 1)
  const hashes = rowsOf(file, 'SELECT DISTINCT original_snippet_hash FROM sanitization_log')
  assert.equal(hashes.length, 1)
})

const broken: readonly (readonly [string, (file: string) => void, RegExp])[] = [
  ['a file that is no database', (file) => writeFileSync(file, 'not a database'.repeat(1_000)), /not a database/],
  ['a folder in its place', (file) => mkdirSync(file), /cannot be opened/],
  [
    'tables of a newer version',
    (file) => {
      const database = openDatabase(file, { nowMs: 0 })
      database.exec(`INSERT INTO conversations_schema VALUES (99, '')`)
      database.close()
    },
    /schema version 99/,
  ],
]
for (const [what, breakIt, said] of broken) {
  test(`with ${what} the message waits in the spool`, async () => {
    const file = rig.next()
    breakIt(file)
    assertHarmless(await rig.prompt(`hello ${RAW}`, at(file)), said)
    assert.equal(spooled(file).length, 1)
    assert.deepEqual(rig.filesWith(RAW), [])
  })
}

test('with a missing folder the message waits in the home folder until the database is there', async () => {
  const file = path.join(path.dirname(rig.next()), 'missing/conversations.db')
  assertHarmless(await rig.prompt(`hello ${RAW}`, at(file)), /cannot be opened.*the message waits in the spool/)
  mkdirSync(path.dirname(file))
  assert.deepEqual(await takeIn(file), { takenIn: 1, known: 0, unreadable: [] })
  assert.deepEqual(contents(file), ['hello [EMAIL]'])
})

test('on a full disk the message waits in the home folder, or is lost with a sentence if that is full too', async () => {
  const [file, small] = [rig.next(), rig.next()]
  // The largest file that the process may write, in blocks: the spool entry fits, the database does not.
  const limited = (blocks: number) => ['/bin/sh', '-c', `ulimit -f ${blocks}; exec "$0" "$@"`, process.execPath]
  const run = await rig.prompt(`hello ${RAW}`, { ...at(file), command: limited(8) })
  assertHarmless(run, /the disk failed or is full.*the message waits in the spool/)
  assert.equal((await takeIn(file)).takenIn, 1)
  const lost = await rig.prompt(`hello ${RAW}`, { ...at(small), command: limited(0) })
  assertHarmless(lost, /the spool cannot be written either \(EFBIG\); the message was not stored/)
  assert.deepEqual(rig.filesWith(RAW), [])
})

test('a Node without node:sqlite spools', async () => {
  const file = rig.next()
  const run = await rig.prompt('hello', { ...at(file), command: [process.execPath, '--no-experimental-sqlite'] })
  assertHarmless(run, /has no node:sqlite; use 24\.15 or newer; the message waits in the spool/)
  assert.equal((await takeIn(file)).takenIn, 1)
})

test('another engine is named without its password, and the message waits for the default database', async () => {
  const run = await rig.prompt('hello', { args: ['--engine', 'postgres://me:hunter2@127.0.0.1/x'] })
  assertHarmless(run, /kept in SQLite, not in postgres.*the message waits in the spool/)
  assert.doesNotMatch(run.stderr, /hunter2/)
  assert.deepEqual(rig.filesWith('hunter2'), [])
  assert.equal((await takeIn(path.join(rig.home, '.millrace/conversations.db'))).takenIn, 1)
  assertHarmless(await rig.prompt('hello', { args: ['--engine=sqlite::memory:'] }), /in memory ends with the hook/)
  assert.equal((await takeIn(path.join(rig.home, '.millrace/conversations.db'))).takenIn, 1)
})

// B15
test('input that is no event is refused in one line, and neither it nor the log repeats any of it', async () => {
  const file = rig.next()
  const inputs: readonly (readonly [string, RegExp])[] = [
    ['', /is empty/],
    ['{', /is not JSON/],
    [`{"prompt": "${RAW}"`, /is not JSON/],
    [`"${RAW}"`, /not a JSON object/],
    ['[]', /not a JSON object/],
    ['null', /not a JSON object/],
    ['['.repeat(200_000), /is not JSON/],
    [`{"hook_event_name":"UserPromptSubmit","prompt":"${RAW}"}`, /neither 'conversation_id' nor 'session_id'/],
    [`{"hook_event_name":"${RAW}","session_id":"a"}`, /no message of the conversation/],
    ['{"hook_event_name":"SessionEnd","session_id":"a"}', /nothing is stored/],
    ['\u0000\u0001\u0002', /is not JSON/],
  ]
  for (const [input, said] of inputs) {
    const run = await rig.run(input, at(file))
    assertHarmless(run, said)
    assert.match(run.stderr, /^millrace-hook: [^\n]+\n$/)
  }
  assert.deepEqual(readdirSync(path.dirname(file)), [])
  assert.deepEqual(rig.filesWith(RAW), [])
  const log = readFileSync(path.join(rig.home, '.millrace/hook.log'), 'utf8').trim().split('\n')
  for (const line of log) assert.deepEqual(Object.keys(JSON.parse(line)), ['at', 'pid', 'message'])
})

test('a prompt of 1 MB is stored, of 10 MB is cut, of 20 MB is refused', async () => {
  const file = rig.next()
  const text = 'a line of an ordinary log file\n'
  assertHarmless(await rig.prompt(text.repeat(30_000), at(file)), null)
  const long = await rig.prompt(text.repeat(10_000_000 / text.length), { ...at(file), session: 'b' })
  assertHarmless(long, /its last \d+ characters were not stored/)
  assertHarmless(await rig.prompt(text.repeat(20_000_000 / text.length), at(file)), /longer than 16777216 bytes/)
  const lengths = rowsOf(file, 'SELECT length(content) AS length FROM messages ORDER BY length').map(
    (row) => row.length,
  )
  assert.equal(lengths[0], text.length * 30_000)
  assert.ok(Number(lengths[1]) > CONTENT_MAX - 1_000 && Number(lengths[1]) <= CONTENT_MAX)
})

test('a caller that never closes standard input holds nothing up', async () => {
  const file = rig.next()
  assertHarmless(await rig.prompt('hello', { ...at(file), closesStdin: false }), null)
  assert.deepEqual(contents(file), ['hello'])
  assertHarmless(await rig.run('{"prompt":', { ...at(file), closesStdin: false }), /did not end in time/)
})

test('twenty hooks at once on a new file: nothing is lost, and every message has its place', async () => {
  const file = rig.next()
  const runs = await Promise.all(Array.from({ length: 20 }, (_, index) => rig.prompt(`prompt ${index}`, at(file))))
  for (const { code, stdout } of runs) assert.deepEqual([code, stdout], [0, ''])
  const { takenIn } = await takeIn(file)
  const rows = rowsOf(file, 'SELECT seq, content FROM messages ORDER BY seq')
  assert.equal(runs.filter(({ stderr }) => stderr !== '').length, takenIn)
  assert.deepEqual(
    rows.map(({ seq }) => seq),
    Array.from({ length: 20 }, (_, index) => index + 1),
  )
  assert.equal(new Set(rows.map(({ content }) => content)).size, 20)
})

test('the log is kept short', async () => {
  const log = path.join(rig.home, '.millrace/hook.log')
  writeFileSync(log, 'x'.repeat(1_100_000))
  await rig.run('{')
  assert.ok(statSync(log).size < 1_000)
  assert.equal(statSync(`${log}.1`).size, 1_100_000)
})
