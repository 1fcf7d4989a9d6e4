import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { drain } from '../../../src/testing/drain.ts'
import { seededRandom } from '../../../src/testing/open-for-test.ts'
import { addMessages, finding, learning, openExtraction } from '../../../test/fixtures/conversations.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { forgetConversation } from '../store/forget.ts'

const files = tempFiles()
const CONVERSATIONS = ['01HXZ0000000000000000000AA', '01HXZ0000000000000000000BB', '01HXZ0000000000000000000CC']
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))

// X096 X097 X123
test(`prompts, failures and forgetting at any moment of a model call lose, leak and repeat nothing (SEED=${SEED})`, async () => {
  const random = seededRandom(SEED)
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  await using pipeline = await openExtraction(files.next())
  const { database, model, mill, clock, validation, extraction } = pipeline
  let count = 0
  const prompt = (conversation = pick(CONVERSATIONS)): void => {
    count += 1
    addMessages(database, [`prompt ${count} by Ann`], { conversation, nowMs: clock.nowMs() })
  }
  const extractAgain = (conversation_id: string): void =>
    void mill.enqueue(extraction, { conversation_id, min_confidence: 0, categories: [] })
  /** What happens to the conversation that a model is asked about. */
  const acts: readonly ((conversation: string) => unknown)[] = [
    ...[() => {}, () => {}, () => prompt(), prompt, extractAgain],
    async (conversation) => {
      await forgetConversation({ database, home: files.folder }, conversation)
      if (random() < 0.7) prompt(conversation)
    },
    () => {
      throw new Error('the model failed')
    },
  ]
  model.findings = finding('Ann')
  let wording = 0
  // In other words each time, so that the hash recognises no second extraction of a message.
  model.learnings = (messages) =>
    messages.map(({ id, content }) => {
      wording += 1
      return learning({ content: `${wording}: ${content}`, source_message_ids: [id] })
    })
  const turns = async (): Promise<void> => {
    for (let left = Math.floor(random() * 8); left > 0; left -= 1) await setImmediate()
  }
  model.before = async ([message]) => {
    const row = database.prepare('SELECT conversation_id AS id FROM messages WHERE id = ?').get(String(message?.id))
    await turns()
    if (row !== undefined) await pick(acts)(String(row.id))
    await turns()
  }
  for (let round = 0; round < 25; round += 1) {
    prompt()
    await drain(mill, [validation, extraction], { concurrency: 1 + Math.floor(random() * 3) })
    await clock.advance('10s')
  }
  model.before = () => {}
  // A job that has used up its attempts leaves its conversation to the next prompt.
  for (const conversation of CONVERSATIONS)
    addMessages(database, ['the last by Ann'], { conversation, nowMs: clock.nowMs() })
  for (
    let left = true;
    left;
    left = Object.values(await mill.counts()).some(({ ready, delayed }) => ready + delayed > 0)
  ) {
    await clock.advance('2m')
    await drain(mill, [validation, extraction])
  }
  const number = (sql: string): unknown => Object.values(database.prepare(sql).get() ?? {})[0]
  assert.equal(number('SELECT count(*) FROM messages WHERE validated_at IS NULL'), 0, 'not validated')
  assert.equal(number(`SELECT count(*) FROM messages WHERE content LIKE '%Ann%'`), 0, 'leaked')
  assert.equal(number(`SELECT count(*) FROM learnings WHERE content LIKE '%Ann%'`), 0, 'leaked')
  const messages = number('SELECT count(*) FROM messages')
  assert.equal(number(`SELECT count(*) FROM sanitization_log WHERE detector = 'ai'`), messages, 'findings')
  const sources = `FROM learnings, json_each(source_message_ids) JOIN messages ON messages.id = value`
  assert.equal(number(`SELECT count(DISTINCT value) ${sources}`), messages, 'every message is a source')
  assert.equal(number(`SELECT count(*) FROM learnings`), messages, 'of one learning')
})
