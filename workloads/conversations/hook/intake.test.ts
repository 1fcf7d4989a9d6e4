import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { newJobId } from '../../../src/job/job.ts'
import { toIso } from '../../../src/time/iso.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { inTransaction, openDatabase } from '../store/database.ts'
import { type SanitizedMessage, writeMessage } from './capture.ts'
import { takeInSpool } from './intake.ts'
import { hasSpooled, parseEntry, removeSpooled, spoolFolders, writeToSpool } from './spool.ts'

const files = tempFiles()
const CONVERSATION = '01K5XJ7Q2M4R8T0V6W9Y3Z1A5B'
const OTHER = '01K5XJ7Q2M4R8T0V6W9Y3Z1A5C'

function message(content: string, atMs: number, conversationId: string = CONVERSATION): SanitizedMessage {
  const findings = [{ category: 'email', hash: 'ab', replacement: '[EMAIL]' }]
  return { id: newJobId(atMs), conversationId, role: 'user', content, version: '1', findings, cut: 0, at: toIso(atMs) }
}

function rig() {
  const file = files.next()
  const home = `${file}.home`
  mkdirSync(home)
  const database = openDatabase(file, { nowMs: 0 })
  const folders = spoolFolders(file, home)
  const stored = () =>
    database
      .prepare('SELECT seq, content FROM messages ORDER BY seq')
      .all()
      .map((row) => ({ ...row }))
  return { file, home, database, folders, stored, takeIn: () => takeInSpool({ database, home }) }
}

test('entries of both folders are taken in by their time, with their findings and one job, and their files go', async () => {
  const { file, home, database, folders, stored, takeIn } = rig()
  const [beside = '', inHome = ''] = folders
  assert.equal(hasSpooled(file, home), false)
  const [one, two, three] = [message('one', 1_000), message('two', 2_000), message('three', 3_000)]
  writeToSpool([inHome], two)
  writeToSpool([beside], one)
  writeToSpool([beside], three)
  assert.equal(hasSpooled(file, home), true)
  assert.equal(statSync(inHome).mode & 0o777, 0o700)
  assert.equal(statSync(path.join(inHome, readdirSync(inHome)[0] ?? '')).mode & 0o777, 0o600)
  assert.deepEqual(await takeIn(), { takenIn: 3, known: 0, unreadable: [] })
  assert.deepEqual(stored(), [
    { seq: 1, content: 'one' },
    { seq: 2, content: 'two' },
    { seq: 3, content: 'three' },
  ])
  assert.equal(hasSpooled(file, home), false)
  assert.equal(database.prepare('SELECT count(*) AS count FROM sanitization_log').get()?.count, 3)
  assert.equal(database.prepare('SELECT count(*) AS count FROM job_queue').get()?.count, 1)
})

test('messages that were spooled after the clock was set back come behind the earlier ones', async () => {
  const { folders, stored, takeIn } = rig()
  const [, inHome = ''] = folders
  // Ids as hooks make them: newJobId of one process never goes back.
  const times = '9231578'
  for (const [index, digit] of [...times].entries()) {
    const id = `0${digit}K5XJ7Q2M4R8T0V6W9Y3Z1A5B`.slice(0, 26)
    // The first one is in the other folder.
    writeToSpool(index === 0 ? [inHome] : folders, { ...message(`${index}`, 1_000), id })
  }
  assert.equal((await takeIn()).takenIn, times.length)
  assert.deepEqual(
    stored().map(({ content }) => content),
    ['0', '1', '2', '3', '4', '5', '6'],
  )
})

test('an entry whose file came back, or whose message was written after all, is not taken in again', async () => {
  const { database, folders, stored, takeIn } = rig()
  const [again, written] = [message('again', 1_000), message('written', 2_000)]
  writeToSpool(folders, again)
  await takeIn()
  writeToSpool(folders, again)
  inTransaction(database, () => writeMessage(database, written, 2_000))
  writeToSpool(folders, written)
  assert.deepEqual(await takeIn(), { takenIn: 0, known: 2, unreadable: [] })
  assert.deepEqual(stored(), [
    { seq: 1, content: 'again' },
    { seq: 2, content: 'written' },
  ])
})

test('a file that is no entry is kept aside and named; what a killed hook has left is taken in if it is whole', async () => {
  const { file, home, folders, stored, takeIn } = rig()
  const [folder = ''] = folders
  mkdirSync(folder)
  const whole = JSON.stringify(message('whole', 1_000))
  writeFileSync(path.join(folder, '1.json'), whole.slice(0, -10))
  writeFileSync(path.join(folder, '2.json'), '{"id":1}')
  writeFileSync(path.join(folder, '3.draft'), whole)
  writeFileSync(path.join(folder, '4.draft'), '{')
  writeFileSync(path.join(folder, '5.draft'), JSON.stringify(message('still being written', 2_000)))
  for (const old of ['3.draft', '4.draft']) utimesSync(path.join(folder, old), 0, 0)
  const { takenIn, unreadable } = await takeIn()
  assert.equal(takenIn, 1)
  assert.deepEqual(
    unreadable.map((file) => path.basename(file)),
    ['1.json.unreadable', '2.json.unreadable', '4.draft.unreadable'],
  )
  assert.deepEqual(stored(), [{ seq: 1, content: 'whole' }])
  assert.deepEqual(readdirSync(folder).sort(), [...unreadable.map((file) => path.basename(file)), '5.draft'].sort())
  assert.equal(hasSpooled(file, home), false)
})

test('an entry of the wrong form is none', () => {
  const right = message('a', 0)
  assert.deepEqual(parseEntry(JSON.stringify(right)), right)
  const wrong = {
    id: 'x',
    conversationId: '',
    role: 'tool',
    content: 1,
    version: null,
    findings: [{}],
    cut: '0',
    at: 'now',
  }
  for (const [field, value] of Object.entries(wrong)) {
    assert.equal(parseEntry(JSON.stringify({ ...right, [field]: value })), null, field)
  }
})

test('what waits of a forgotten conversation is removed', () => {
  const { file, home, folders } = rig()
  writeToSpool(folders, message('of it', 1_000))
  writeToSpool(folders, message('of another', 2_000, OTHER))
  assert.equal(removeSpooled(file, CONVERSATION, home), 1)
  assert.equal(hasSpooled(file, home), true)
  assert.equal(removeSpooled(file, OTHER, home), 1)
  assert.equal(hasSpooled(file, home), false)
})

test('two workers that are killed again and again take every entry in once and in order, while hooks go on writing', async () => {
  const { file, home, database, folders, stored, takeIn } = rig()
  const count = 400
  const code = `
    import { openDatabase } from ${JSON.stringify(new URL('../store/database.ts', import.meta.url).href)}
    import { takeInSpool } from ${JSON.stringify(new URL('./intake.ts', import.meta.url).href)}
    const database = openDatabase(${JSON.stringify(file)}, { nowMs: 0 })
    console.log('ready')
    for (;;) {
      try { await takeInSpool({ database, home: ${JSON.stringify(home)} }) } catch (error) { if (error.errcode !== 5) throw error }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }`
  let written = 0
  const write = (some: number): void => {
    for (const end = Math.min(count, written + some); written < end; written += 1) {
      writeToSpool(folders, message(`${written}`, 1_000 + written))
    }
  }
  for (const killAfterMs of [1, 7, 20]) {
    write(count / 4)
    const workers = [0, 1].map(() => spawn(process.execPath, ['--input-type=module', '-e', code]))
    await Promise.all(workers.map(({ stdout }) => once(stdout, 'data')))
    // A kill at some moment of its work, not a wait for something to happen.
    await setTimeout(killAfterMs)
    for (const worker of workers) worker.kill('SIGKILL')
    await Promise.all(workers.map((worker) => once(worker, 'exit')))
  }
  write(count)
  await takeIn()
  const rows = stored()
  assert.deepEqual(
    rows,
    Array.from({ length: count }, (_, index) => ({ seq: index + 1, content: `${index}` })),
  )
  assert.equal(database.prepare('SELECT count(*) AS count FROM sanitization_log').get()?.count, count)
})

test('an entry whose conversation is forgotten before the transaction does not come back', async () => {
  const { file, home, database, folders, stored, takeIn } = rig()
  writeToSpool(folders, message('gone', 1_000))
  const exec = database.exec.bind(database)
  database.exec = (sql) => {
    database.exec = exec
    // What `forget` of another process does between the list of the files and the transaction.
    removeSpooled(file, CONVERSATION, home)
    exec(sql)
  }
  assert.deepEqual(await takeIn(), { takenIn: 0, known: 0, unreadable: [] })
  assert.deepEqual(stored(), [])
})
