import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drain } from '../../../src/testing/drain.ts'
import {
  addMessages,
  CONVERSATION,
  learning,
  metadataOf,
  oneEach,
  openExtraction,
} from '../../../test/fixtures/conversations.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { EXTRACT_LEARNING } from './contract.ts'

const files = tempFiles()

test('nothing is extracted from a conversation with a message that is not validated', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, mill, extraction, results } = pipeline
  addMessages(database, ['x'])
  await mill.enqueue(extraction, { conversation_id: CONVERSATION, min_confidence: 0.7, categories: [] })
  await drain(mill, [extraction])
  assert.deepEqual(await results(), [{ skipped: true, reason: 'not-validated' }])
  assert.deepEqual(model.asked, [])
})

test('when one insert fails, no learning and no marker is stored, and the retry stores all', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, run, rows, clock, results } = pipeline
  addMessages(database, ['one', 'two'])
  model.learnings = oneEach
  database.exec(`CREATE TRIGGER refuse BEFORE INSERT ON learnings
    WHEN (SELECT count(*) FROM learnings) = 1 BEGIN SELECT RAISE(ABORT, 'disk trouble'); END`)
  await run()
  assert.deepEqual(rows(), [])
  assert.equal(metadataOf(database).extracted_seq, undefined)
  database.exec('DROP TRIGGER refuse')
  await clock.advance('1m')
  await run()
  assert.deepEqual(await results(), [{ success: true, learnings: 2, duplicates: 0, dropped: 0 }])
})

test('1 200 messages are extracted in pages; a failure between two loses none and repeats none', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, run, rows, clock, validation, mill } = pipeline
  const texts = Array.from({ length: 1_200 }, (_, index) => `message ${index}`)
  addMessages(database, texts)
  await drain(mill, [validation])
  model.asked.length = 0
  model.learnings = oneEach
  model.before = () => {
    if (model.asked.length === 2) throw new Error('killed')
  }
  await run()
  assert.equal(metadataOf(database).extracted_seq, 500)
  await clock.advance('1m')
  await run()
  assert.equal(metadataOf(database).extracted_seq, 1_200)
  assert.deepEqual(
    model.asked.map(({ length }) => length),
    [500, 510, 510, 210],
  )
  assert.equal(rows().length, 1_200)
})

test('two jobs of one conversation at once extract it once', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, mill, validation, extraction, results, rows } = pipeline
  addMessages(database, ['one'])
  await drain(mill, [validation])
  await mill.enqueue(extraction, { conversation_id: CONVERSATION, min_confidence: 0, categories: [] })
  model.asked.length = 0
  const both = Promise.withResolvers<void>()
  model.before = () => {
    if (model.asked.length === 2) both.resolve()
    return both.promise
  }
  // In other words each time, as models answer: the hash alone would store both.
  let wording = 0
  model.learnings = ([message]) => {
    wording += 1
    return [learning({ content: `wording ${wording}`, source_message_ids: [String(message?.id)] })]
  }
  await drain(mill, [extraction], { concurrency: 2 })
  assert.deepEqual((await results()).map((result) => JSON.stringify(result)).toSorted(), [
    '{"skipped":true,"reason":"already-extracted"}',
    '{"success":true,"learnings":1,"duplicates":0,"dropped":0}',
  ])
  assert.equal(rows().length, 1)
})

test('a job that finds a part of its messages extracted by an earlier one extracts the rest', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, mill, validation, extraction, results, rows } = pipeline
  addMessages(database, ['one', 'two'])
  await drain(mill, [validation])
  model.asked.length = 0
  model.learnings = oneEach
  model.before = () => {
    // The job before this one began when there was one message, and ends now.
    if (model.asked.length === 1)
      database.exec(`UPDATE conversations SET metadata = json_set(metadata, '$.extracted_seq', 1)`)
  }
  await drain(mill, [extraction])
  assert.deepEqual(
    rows().map(({ content }) => content),
    ['about two'],
  )
  // The first message is only its context by then.
  assert.deepEqual(await results(), [{ success: true, learnings: 1, duplicates: 0, dropped: 1 }])
  assert.equal(metadataOf(database).extracted_seq, 2)
})

test('nothing is written into a conversation that is forgotten during the call, even if it begins anew', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, mill, validation, extraction, results, rows } = pipeline
  addMessages(database, ['one'])
  await drain(mill, [validation])
  model.learnings = oneEach
  model.before = () => {
    database.exec('DELETE FROM conversations')
    addMessages(database, ['a new start'])
  }
  await drain(mill, [extraction])
  assert.deepEqual(await results(), [{ skipped: true, reason: 'forgotten' }])
  assert.deepEqual(rows(), [])
  assert.deepEqual(metadataOf(database), {})
})

test('a learning that names a message which the model was not given is a retry', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, run, mill } = pipeline
  addMessages(database, ['one'])
  model.learnings = () => [learning({ source_message_ids: ['made up'] })]
  await run()
  const [job] = await mill.jobs({ type: EXTRACT_LEARNING })
  assert.deepEqual([job?.state, job?.attempt], ['queued', 1])
})
