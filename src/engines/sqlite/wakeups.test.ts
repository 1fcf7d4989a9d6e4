import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, mock, test } from 'node:test'
import { systemClock } from '../../time/clock.ts'
import { Connection } from './database.ts'
import { Wakeups } from './wakeups.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-wakeups-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function pair(name: string): {
  wakeups: Wakeups
  mine: DatabaseSync
  other: DatabaseSync
  looks(): number
  close(): void
} {
  const file = join(folder, name)
  const mine = new DatabaseSync(file)
  mine.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x)')
  const other = new DatabaseSync(file)
  const connection = new Connection(mine)
  const prepare = mock.method(connection, 'prepare')
  const wakeups = new Wakeups(connection, systemClock)
  return {
    wakeups,
    mine,
    other,
    looks: () => prepare.mock.callCount(),
    close() {
      wakeups.close()
      mine.close()
      other.close()
    },
  }
}

/** Uses up the first wake-up, which comes because nothing had been seen before. */
async function settleFirstLook(wakeups: Wakeups): Promise<void> {
  await wakeups.wait(1_000, new AbortController().signal)
}

// X009
test('a commit of another connection ends a wait', async () => {
  const { wakeups, other, close } = pair('commit.db')
  await settleFirstLook(wakeups)
  const startMs = systemClock.monotonicMs()
  const woken = wakeups.wait(120_000, new AbortController().signal)
  other.exec('INSERT INTO t VALUES (1)')
  await woken
  assert.ok(systemClock.monotonicMs() - startMs < 60_000)
  close()
})

test('a commit made before the wait began still ends it', async () => {
  const { wakeups, other, close } = pair('before.db')
  await settleFirstLook(wakeups)
  other.exec('INSERT INTO t VALUES (1)')
  const startMs = systemClock.monotonicMs()
  await wakeups.wait(120_000, new AbortController().signal)
  assert.ok(systemClock.monotonicMs() - startMs < 60_000)
  close()
})

test('without a change a wait lasts its time, and an abort ends it', async () => {
  const { wakeups, close } = pair('quiet.db')
  await settleFirstLook(wakeups)
  const startMs = systemClock.monotonicMs()
  await wakeups.wait(60, new AbortController().signal)
  assert.ok(systemClock.monotonicMs() - startMs >= 55)
  const abort = new AbortController()
  const waiting = wakeups.wait(60_000, abort.signal)
  abort.abort()
  await waiting
  close()
})

test('a watcher hears of commits while nobody waits for work', async () => {
  const { wakeups, other, close } = pair('watch.db')
  const heard = new Promise<void>((resolve) => {
    let looks = 0
    wakeups.watch(() => {
      looks += 1
      // The first look always differs from what was seen before, which is nothing.
      if (looks === 1) other.exec('INSERT INTO t VALUES (1)')
      else resolve()
    })
  })
  await heard
  close()
})

test('a quiet file is looked at rarely once its notices are known to come, and a commit still ends a wait', async () => {
  const { wakeups, other, looks, close } = pair('notices.db')
  const { signal } = new AbortController()
  await settleFirstLook(wakeups)
  const deadlineMs = systemClock.monotonicMs() + 60_000
  // A round is as quiet as it can be only after the notice of an earlier one.
  for (let rounds = 1, calm = false; !calm; rounds += 1) {
    assert.ok(systemClock.monotonicMs() < deadlineMs, 'the file is looked at all the time')
    await wakeups.wait(1_500, signal)
    const before = looks()
    await wakeups.wait(1_000, signal)
    calm = looks() - before < 20
    const woken = wakeups.wait(120_000, signal)
    other.exec(`INSERT INTO t VALUES (${rounds})`)
    await woken
  }
  assert.ok(systemClock.monotonicMs() < deadlineMs)
  close()
})

test('a write of our own that nobody waits for begins no frequent reading', async () => {
  const { wakeups, mine, other, looks, close } = pair('own.db')
  const { signal } = new AbortController()
  await settleFirstLook(wakeups)
  const deadlineMs = systemClock.monotonicMs() + 60_000
  for (let rounds = 1, calm = false; !calm; rounds += 1) {
    assert.ok(systemClock.monotonicMs() < deadlineMs, 'the file is read often after every write')
    await wakeups.wait(1_500, signal)
    const before = looks()
    mine.exec(`INSERT INTO t VALUES (${rounds})`)
    wakeups.wrote()
    await wakeups.wait(200, signal)
    // One at the notice, one after it, and the one of every second.
    calm = looks() - before <= 3
    const woken = wakeups.wait(120_000, signal)
    other.exec(`INSERT INTO t VALUES (${rounds})`)
    await woken
  }
  close()
})

test('callers that wait are woken while the clock of the file is behind', async () => {
  const file = join(folder, 'behind.db')
  const mine = new DatabaseSync(file)
  mine.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x)')
  let isBehind = false
  const wakeups = new Wakeups(new Connection(mine), systemClock, () => isBehind)
  await settleFirstLook(wakeups)
  const startMs = systemClock.monotonicMs()
  const woken = wakeups.wait(120_000, new AbortController().signal)
  isBehind = true
  await woken
  assert.ok(systemClock.monotonicMs() - startMs < 60_000)
  wakeups.close()
  mine.close()
})
