import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drain } from '../../../src/testing/drain.ts'
import {
  addMessages,
  CONVERSATION,
  contents,
  finding,
  findingRows,
  metadataOf,
  openValidation,
} from '../../../test/fixtures/conversations.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { EXTRACT_LEARNING, SANITIZE_AI_VALIDATION } from './contract.ts'

const files = tempFiles()

test('when an insert fails, neither marker nor message nor finding is changed', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, mill, run } = pipeline
  addMessages(database, ['ask Ann', 'ask Bob'])
  model.findings = (messages) => [...finding('Ann')(messages), ...finding('Bob')(messages)]
  database.exec(`CREATE TRIGGER refuse BEFORE INSERT ON sanitization_log
    WHEN (SELECT count(*) FROM sanitization_log) = 1 BEGIN SELECT RAISE(ABORT, 'disk trouble'); END`)
  await run()
  assert.deepEqual(metadataOf(database), {})
  assert.deepEqual(contents(database), ['ask Ann', 'ask Bob'])
  assert.deepEqual(findingRows(database), [])
  assert.deepEqual(await mill.jobs({ type: EXTRACT_LEARNING }), [])
  const [job] = await mill.jobs({ type: SANITIZE_AI_VALIDATION })
  assert.deepEqual([job?.state, job?.attempt], ['queued', 1])
})

test('1 200 messages are validated in pages of at most 500, and long ones in smaller pages', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, run, results } = pipeline
  const texts = Array.from({ length: 1_200 }, (_, index) => `message ${index}`)
  addMessages(database, [...texts, `${'x'.repeat(150_000)} ask Ann`, 'y'.repeat(60_000), 'z'.repeat(60_000)])
  model.findings = finding('Ann')
  await run()
  assert.deepEqual(await results(), [{ success: true, findings: 1 }])
  assert.deepEqual(
    model.asked.map(({ length }) => length),
    [500, 500, 200, 1, 1, 1],
  )
  assert.equal(contents(database)[1_200], `${'x'.repeat(150_000)} ask [PERSON_NAME]`)
})

test('a job that fails between two pages goes on with the second', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, run, results, clock } = pipeline
  addMessages(
    database,
    Array.from({ length: 600 }, (_, index) => `message ${index}`),
  )
  model.before = () => {
    if (model.asked.length === 2) throw new Error('killed')
  }
  await run()
  assert.deepEqual(metadataOf(database), {})
  await clock.advance('1m')
  await run()
  assert.deepEqual(
    model.asked.map(({ length }) => length),
    [500, 100, 100],
  )
  assert.deepEqual(await results(), [{ success: true, findings: 0 }])
})

test('a job with more pages than it can do in a minute is given back, without using an attempt', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, mill, run, results, clock } = pipeline
  addMessages(database, ['first'])
  // Each call takes 40 s, and somebody types all the time.
  model.before = async () => {
    await clock.advance('40s')
    if (model.asked.length < 9) addMessages(database, [`message ${model.asked.length}`], { nowMs: clock.nowMs() })
  }
  for (let turn = 0; turn < 8; turn += 1) {
    await run()
    await clock.advance('2s')
  }
  assert.equal(metadataOf(database).ai_validation_completed, true)
  assert.equal(contents(database).length, 9)
  assert.deepEqual([...new Set(model.asked.map(({ length }) => length))], [1])
  assert.deepEqual((await results()).at(0), { success: true, findings: 0 })
  const jobs = await mill.jobs({ type: SANITIZE_AI_VALIDATION })
  assert.deepEqual([...new Set(jobs.map(({ state, attempt }) => `${state} ${attempt}`))], ['completed 1'])
})

test('a message that the hook adds during the call is validated too, and none is lost', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, run, results } = pipeline
  addMessages(database, ['first'])
  model.before = () => {
    if (model.asked.length === 1) addMessages(database, ['second by Ann'])
  }
  model.findings = finding('Ann')
  await run()
  assert.deepEqual(contents(database), ['first', 'second by [PERSON_NAME]'])
  assert.equal(metadataOf(database).ai_validation_completed, true)
  assert.deepEqual(await results(), [
    { success: true, findings: 1 },
    { skipped: true, reason: 'already-validated' },
  ])
})

test('a message that changed during the call is left alone and read again', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, run } = pipeline
  addMessages(database, ['by Ann'])
  model.before = () => {
    if (model.asked.length === 1) database.exec(`UPDATE messages SET content = 'edited by Ann'`)
  }
  model.findings = finding('Ann')
  await run()
  assert.deepEqual(contents(database), ['edited by [PERSON_NAME]'])
  assert.equal(findingRows(database).length, 1)
})

test('nothing is written back into a conversation that is forgotten during the call', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, run, results, mill } = pipeline
  addMessages(database, ['by Ann'])
  model.before = () => database.exec('DELETE FROM conversations')
  model.findings = finding('Ann')
  await run()
  assert.deepEqual(await results(), [{ skipped: true, reason: 'forgotten' }])
  assert.deepEqual([contents(database), findingRows(database)], [[], []])
  assert.deepEqual(await mill.jobs({ type: EXTRACT_LEARNING }), [])
})

test('two jobs of one conversation at once write each finding once', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, mill, validation, results } = pipeline
  addMessages(database, ['by Ann'])
  await mill.enqueue(validation, {
    ...{ conversation_id: CONVERSATION, message_ids: [], sanitization_version: 'test-1' },
  })
  const both = Promise.withResolvers<void>()
  model.before = () => {
    if (model.asked.length === 2) both.resolve()
    return both.promise
  }
  model.findings = finding('Ann')
  await drain(mill, [validation], { concurrency: 2 })
  assert.deepEqual(
    (await results()).toSorted((one, other) => JSON.stringify(one).localeCompare(JSON.stringify(other))),
    [
      { success: true, findings: 0 },
      { success: true, findings: 1 },
    ],
  )
  assert.equal(findingRows(database).length, 1)
  assert.equal((await mill.jobs({ type: EXTRACT_LEARNING })).length, 1)
})

test('nonsense from the model is a retry that quotes no content, and dies after three attempts', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, mill, run, clock, lines } = pipeline
  const [id] = addMessages(database, ['ask Ann about it'])
  const answers = [
    [{ message_id: id, snippet: 'Ann', category: 'name', confidence: 'high: Ann' }],
    [{ message_id: 'made up', snippet: 'Ann', category: 'name', confidence: 1 }],
  ]
  model.findings = () => {
    const answer = answers.shift()
    if (answer === undefined) throw new TypeError('cannot read: ask Ann about it')
    return answer
  }
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await run()
    await clock.advance('2m')
  }
  const [job] = await mill.jobs({ type: SANITIZE_AI_VALIDATION })
  assert.deepEqual([job?.state, job?.attempt], ['dead_letter', 3])
  assert.equal(job?.error?.message, `the model 'scripted' failed with TypeError`)
  const history = JSON.stringify(await mill.history(String(job?.id)))
  assert.match(history, /does not match its schema \(invalid_type at 0\.confidence\)/)
  assert.match(history, /named a message that it was not given/)
  assert.doesNotMatch(history + JSON.stringify(job) + JSON.stringify(lines), /Ann/)
  assert.deepEqual([contents(database), metadataOf(database)], [['ask Ann about it'], {}])
})

test('an aborted job writes nothing', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, mill, validation } = pipeline
  addMessages(database, ['by Ann'])
  model.findings = finding('Ann')
  model.before = async () => {
    const [job] = await mill.jobs({ type: SANITIZE_AI_VALIDATION })
    await mill.cancel(String(job?.id))
    // The cancellation reaches the handler's signal with the next look at the leases.
    await aborted.promise
  }
  const aborted = Promise.withResolvers<void>()
  const watching = validation.handledBy((context) => {
    context.signal.addEventListener('abort', () => aborted.resolve())
    return validation.run(context)
  })
  await drain(mill, [watching])
  assert.deepEqual([contents(database), findingRows(database)], [['by Ann'], []])
  assert.deepEqual(metadataOf(database), {})
})
