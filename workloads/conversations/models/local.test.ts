import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutPackage } from '../../../test/fixtures/without-package.ts'
import { type LocalModelOptions, localModel } from './local.ts'
import { LEARNING_CATEGORIES, type ModelLearning, PERSONAL_DATA_CATEGORIES } from './model.ts'

const signal = new AbortController().signal
const call = { fetch: () => assert.fail('the local model must not use the network'), signal }

async function found(content: string, options: LocalModelOptions = { names: 'off' }): Promise<readonly string[]> {
  const { items } = await localModel(options).findPersonalData([{ id: 'm', role: 'user', content }], call)
  for (const { snippet, category, confidence } of items) {
    assert.ok(content.includes(snippet), `${snippet} stands in the text`)
    assert.ok(PERSONAL_DATA_CATEGORIES.some((known) => known === category))
    assert.ok(confidence > 0 && confidence < 1)
  }
  return items.map(({ snippet }) => snippet)
}

async function learnt(content: string, role = 'user'): Promise<readonly ModelLearning[]> {
  const wanted = { categories: [], minConfidence: 0 }
  const { items } = await localModel({ names: 'off' }).findLearnings([{ id: 'm', role, content }], wanted, call)
  return items
}

// B56
test('names that look like variables, files or branches are found, and only the name of them', async () => {
  const cases = [
    ['const john_smith_password = read()', 'john_smith'],
    ['send(emailJaneDoe)', 'JaneDoe'],
    ['git checkout feature/peter-kowalski-login', 'peter-kowalski'],
    ['see garcia_maria.csv', 'garcia_maria'],
    ['process.env.THOMAS_MUELLER_TOKEN', 'THOMAS_MUELLER'],
    ['scp jsmith42@host:', 'jsmith42'],
    ['let annaKowalczykAge = 41', 'annaKowalczyk'],
  ] as const
  for (const [text, name] of cases) assert.deepEqual(await found(text), [name], text)
  const innocent =
    'max_value markRead will_retry grantAccess jack_port jane_token peter2_smith rosePalette martin__fowler sarah test_smith Json'
  assert.deepEqual(await found(innocent), [])
})

test('names in prose are found by first names, titles and what stands around them', async () => {
  const cases = [
    ['I asked John Smith about it.', 'John Smith'],
    ['My name is Zsófia Szabó, nice to meet you', 'Zsófia Szabó'],
    ['Prof. Adebayo will decide', 'Adebayo'],
    ['Hi Priya, the build is green', 'Priya'],
    ["It runs on Laura's laptop only", 'Laura'],
    ['Reviewed-by: Quentin Voss', 'Quentin Voss'],
  ] as const
  for (const [text, name] of cases) assert.deepEqual(await found(text), [name], text)
  // Once, although it is found in two ways, and `John` alone where it stands alone too.
  assert.deepEqual(await found('John Smith said so. Ask John Smith.'), ['John Smith'])
  assert.deepEqual(await found('John Smith said so. Ask John about it.'), ['John Smith', 'John'])
})

test('tools with the names of people are left alone, with compromise too', async () => {
  const text =
    'Jenkins, Julia, Ada and Travis run it. Ask Jenkins. Maria DB, Victor and Grace said no. Julia says hello.'
  assert.deepEqual(await found(text), [])
  assert.deepEqual(await found(text, { names: 'on' }), [])
})

test('compromise finds names that are in no list', async () => {
  const text = 'The report came from Geraldine Whitcombe.\nIt was late.'
  assert.deepEqual(await found(text), [])
  assert.deepEqual(await found(text, { names: 'on' }), ['Geraldine Whitcombe'])
  assert.deepEqual(await found(text, {}), ['Geraldine Whitcombe'])
})

test('data that shows by its context is found', async () => {
  const cases = [
    ['She was born on 12 May 1980.', '12 May 1980'],
    ['DOB: 1980-05-12', '1980-05-12'],
    ['Send it to 12 Baker Street please', '12 Baker Street'],
    ['Ich wohne in der Lindenstraße 12a', 'Lindenstraße 12a'],
    ['Passport no. X1234567 is in the scan', 'X1234567'],
    ['the password is "correct horse battery staple"', 'correct horse battery staple'],
    ['password: Tr0ub4dor&3.', 'Tr0ub4dor&3'],
    ['my username is jdoe_1990', 'jdoe_1990'],
  ] as const
  for (const [text, snippet] of cases) assert.deepEqual(await found(text), [snippet], text)
  const innocent = [
    'the password is wrong, the login is broken, the password: see [SECRET]',
    'Node was born in 2009 and the port is 5432 Main thread',
    'passport.js version 1234567 of the passport library',
  ]
  for (const text of innocent) assert.deepEqual(await found(text), [], text)
})

test('placeholders of the rules are no findings', async () => {
  assert.deepEqual(await found('My name is [NAME], Dr. [NAME], and the password is "[SECRET]"', { names: 'on' }), [])
})

test('without the package it goes on with its own rules, unless the package is required', async () => {
  await withoutPackage('compromise', async () => {
    assert.deepEqual(await found('Ask John Smith or Geraldine Whitcombe', {}), ['John Smith'])
    await assert.rejects(found('x', { names: 'on' }), { code: 'ERR_MODULE_MISSING', message: /npm install compromise/ })
  })
})

test('an abort is heard between two pieces of a long message', async () => {
  const abort = new AbortController()
  const content = Array.from({ length: 400 }, (_, at) => `Line ${at} was written on a Monday in Rome.`).join('\n')
  const asked = localModel({ names: 'on' }).findPersonalData([{ id: 'm', role: 'user', content }], {
    ...call,
    signal: abort.signal,
  })
  setImmediate(() => abort.abort(new Error('the job timed out')))
  await assert.rejects(asked, /the job timed out/)
})

test('sentences that state a cause, a fix, a decision, a preference, a practice or a fact are learnings', async () => {
  const cases = [
    ['fix', 'The fix was to raise `busy_timeout` to five seconds.'],
    ['cause', 'Turns out the keeper held the write lock all along.'],
    ['cause', 'The root cause was a missing index on job_queue.'],
    ['decision', 'We use SQLite because one file is easy to back up.'],
    ['decision', 'We decided to keep the outbox in the same database.'],
    ['preference', 'I prefer tabs over spaces in Go projects.'],
    ['practice', 'Always close the pool before the process exits.'],
    ['practice', 'Note to self: rotate the signing key in March.'],
    ['practice', 'To see the plan, run EXPLAIN before the statement.'],
    ['fact', 'Today I learned that WAL mode needs shared memory.'],
  ] as const
  for (const [category, content] of cases) {
    const [learning, ...rest] = await learnt(content)
    assert.deepEqual(rest, [])
    assert.equal(learning?.category, category, content)
    assert.ok(LEARNING_CATEGORIES.some((known) => known === learning.category))
    assert.equal(learning.content, content)
    assert.ok(learning.confidence >= 0.7 && learning.confidence <= 0.95, content)
    assert.deepEqual(learning.source_message_ids, ['m'])
    assert.ok(learning.title.length > 0 && learning.title.length <= 80)
    assert.ok(learning.tags.length > 0 && learning.tags.length <= 5)
  }
})

test('questions, requests, guesses, code, logs and output of tools are no learnings', async () => {
  const nothing = [
    'Should we always close the pool before the process exits?',
    'Please write a test that shows what the fix was.',
    'The fix was it.',
    '```\n// The fix was to raise the timeout of the database.\n```',
    '> The fix was to raise the timeout of the database.',
    '2026-11-17 ERROR the problem was a timeout of the database',
  ]
  for (const content of nothing) assert.deepEqual(await learnt(content), [], content)
  const sentence = 'The fix was to raise the timeout of the database.'
  assert.deepEqual(await learnt(sentence, 'tool'), [])
  assert.deepEqual(await learnt(sentence, 'system'), [])
  assert.equal((await learnt(sentence, 'assistant')).length, 1)
  const [guess] = await learnt('Maybe the problem is the proxy in front of the server.')
  assert.ok((guess?.confidence ?? 1) < 0.7)
})

test('a learning takes its explanation along, is told once, and has a short title', async () => {
  const [learning] = await learnt(
    'So, turns out that the retries were never counted. This is why the dead letters stayed empty.',
  )
  assert.equal(learning?.title, 'The retries were never counted')
  assert.match(learning.content, /This is why the dead letters stayed empty\.$/)
  const sentence = 'Never run two migrations at once on the same `ledger` database, because both take the lock.'
  const messages = ['a', 'b'].map((id) => ({ id, role: 'user', content: `Hello.\n\n- ${sentence}\n- Done.` }))
  const model = localModel({ names: 'off' })
  const wanted = { categories: [], minConfidence: 0 }
  const { items, usage } = await model.findLearnings(messages, wanted, call)
  assert.equal(items.length, 1)
  assert.deepEqual(items[0]?.source_message_ids, ['a', 'b'])
  assert.equal(items[0]?.content, sentence)
  assert.match(items[0]?.title ?? '', /^.{40,79}…$/)
  assert.equal(items[0]?.tags[0], 'ledger')
  assert.deepEqual(usage, { inputTokens: 0, outputTokens: 0 })
  assert.deepEqual(await model.findLearnings(messages, wanted, call), { items, usage })
})

test('hostile texts take no more than linear time', async () => {
  const pieces = [
    'John ',
    'john_',
    'A-',
    'Dr ',
    '```\n',
    '- a\n',
    'password is "',
    'we use ',
    'so, ',
    '\u0301',
    'my name is ',
  ]
  for (const piece of pieces) {
    const content = piece.repeat(Math.ceil(100_000 / piece.length))
    const model = localModel({ names: 'off' })
    const started = performance.now()
    await model.findPersonalData([{ id: 'm', role: 'user', content }], call)
    await model.findLearnings([{ id: 'm', role: 'user', content }], { categories: [], minConfidence: 0 }, call)
    // Quadratic time would take minutes.
    assert.ok(performance.now() - started < 10_000, JSON.stringify(piece))
  }
})
