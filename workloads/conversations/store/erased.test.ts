/** After a conversation is forgotten, no byte of its text is in the file, its full-text index or its write-ahead log. */
import assert from 'node:assert/strict'
import type { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { open } from '../../../src/client/mill.ts'
import { openDesk } from '../../../src/desk/desk.ts'
import { newJobId } from '../../../src/job/job.ts'
import { seededRandom } from '../../../src/testing/open-for-test.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { addLearning, addMessages } from '../../../test/fixtures/conversations.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { storeBytes } from '../../../test/fixtures/store-bytes.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { openDatabase } from './database.ts'
import { forgetConversation, retainConversations } from './forget.ts'
import { LearningRepository } from './learnings.ts'

const files = tempFiles()
const home = files.folder
const OLD_MS = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000
const WORD = /card[1-9]\d{6}/g

function wordsIn(file: string): ReadonlySet<string> {
  return new Set(storeBytes(file).toString('latin1').match(WORD))
}

/** Conversations with words of their own, many of which differ from one of another conversation in the last digit only. */
class Talks {
  readonly database: DatabaseSync
  /** The words that stand, or stood, in each. */
  readonly words = new Map<string, string[]>()
  readonly #random: () => number

  constructor(file: string, seed: number) {
    this.database = openDatabase(file, { nowMs: OLD_MS })
    this.database.exec('PRAGMA synchronous = OFF')
    this.#random = seededRandom(seed)
  }

  /** In turns, so that their rows stand between each other. Returns the words of the conversations. */
  fill(conversations: readonly { readonly id: string; readonly nowMs: number }[]): void {
    for (let round = 0; round < 4; round += 1) {
      for (const { id, nowMs } of conversations) {
        const [first = ''] = addMessages(this.database, [this.#text(id), this.#text(id)], { conversation: id, nowMs })
        addLearning(this.database, { title: 'of cards', content: this.#text(id), conversation: id })
        // As a validation does.
        this.database.prepare('UPDATE messages SET content = ? WHERE id = ?').run(this.#text(id), first)
      }
    }
  }

  /** The words that no other conversation has. */
  wordsOf(ids: readonly string[]): readonly string[] {
    const others = new Set([...this.words].flatMap(([id, words]) => (ids.includes(id) ? [] : words)))
    return ids.flatMap((id) => this.words.get(id) ?? []).filter((word) => !others.has(word))
  }

  #text(conversation: string): string {
    const count = 5 + Math.floor(this.#random() * 60)
    const words = Array.from({ length: count }, () => `card${Math.floor(1e6 + this.#random() * 1e6)}`)
    this.words.set(conversation, [...(this.words.get(conversation) ?? []), ...words])
    return words.join(' ')
  }
}

for (const seed of [1, 2, 3, 4]) {
  test(`forgetting one leaves no word of it, nor of what retention removed before (seed ${seed})`, async (t) => {
    const file = files.next()
    const talks = new Talks(file, seed)
    const { database } = talks
    t.after(() => database.close())
    const all = Array.from({ length: 150 }, (_, index) => ({
      id: newJobId(OLD_MS),
      nowMs: OLD_MS + (index % 3 === 0 ? 0 : 60 * DAY_MS),
    }))
    talks.fill(all)
    const removed = all.filter(({ nowMs }) => nowMs === OLD_MS).map(({ id }) => id)
    const last = all[1]?.id ?? ''
    const gone = talks.wordsOf([...removed, last])
    const clock = new TestClock(OLD_MS + 61 * DAY_MS)
    const before = wordsIn(file)
    assert.ok(gone.filter((word) => before.has(word)).length > 1_000, 'the search finds what is there')
    const retained = await retainConversations({ database, clock, home }, { olderThanDays: 30 })
    const left = wordsIn(file)
    t.diagnostic(
      `left by retention: ${talks.wordsOf(removed).filter((word) => left.has(word)).length} of ${gone.length} words`,
    )
    assert.equal(retained.conversations, removed.length)
    const forgotten = await forgetConversation({ database, clock, home }, last)
    assert.deepEqual([forgotten.conversations, forgotten.isErased], [1, true])
    const found = wordsIn(file)
    assert.deepEqual(
      gone.filter((word) => found.has(word)),
      [],
    )
    const kept = all.find(({ id }) => id !== last && !removed.includes(id))?.id ?? ''
    const learnt = new LearningRepository(database).findByConversation(kept)[0]
    assert.deepEqual(
      new LearningRepository(database).search(learnt?.content ?? '').map(({ id }) => id),
      [learnt?.id],
    )
    database.exec(`INSERT INTO learnings_fts(learnings_fts, rank) VALUES ('integrity-check', 1)`)
  })
}

// The index refers to learnings by rowid, which SQLite promises to keep only for an INTEGER PRIMARY KEY.
test('erasing a job rewrites the file, and learnings are found as before', async (t) => {
  const file = files.next()
  const database = openDatabase(file, { nowMs: OLD_MS })
  const mill = await open(`sqlite:${file}`)
  t.after(async () => {
    await mill.close()
    database.close()
  })
  const titles = Array.from({ length: 30 }, (_, index) => `card${1_000_000 + index}`)
  for (const title of titles) addLearning(database, { title, content: title })
  database.exec('DELETE FROM learnings WHERE rowid % 3 = 0')
  const job = newJob({ type: 'other' })
  await mill.engine.enqueue([job])
  await mill.cancel(job.id)
  assert.equal((await openDesk(mill).erase({ ids: [job.id] }, { who: 'ann', reason: 'a test' })).done, 1)
  const learnings = new LearningRepository(database)
  const found = titles.map((title) => learnings.search(title).map((one) => one.title))
  assert.deepEqual(
    found,
    titles.map((title, index) => (index % 3 === 2 ? [] : [title])),
  )
})
