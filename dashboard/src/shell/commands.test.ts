import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Session } from '../api/shapes.ts'
import { commandsFor } from './commands.ts'
import { NAVIGATION } from './navigation.ts'

const places = NAVIGATION.filter(({ page }) => ['overview', 'jobs', 'dead-letters', 'queues'].includes(page))
const session = (facets: Partial<Session['facets']>): Session => ({ facets }) as Session
const known = { session: session({ inspection: true }), places, types: ['send-email', 'resize', 'dead-drop'] }
const titles = (text: string): readonly string[] =>
  commandsFor(text, known).map(({ kind, title }) => `${kind} ${title}`)

test('pages and types fit by all words, and what begins with the first one is on top', () => {
  assert.deepEqual(titles('dead').slice(0, 2), ['Page Dead letters', 'Type dead-drop'])
  assert.deepEqual(titles('mail').slice(0, 1), ['Type send-email'])
  assert.deepEqual(titles('let dea').slice(0, 1), ['Page Dead letters'])
})

test('any text is searched for, and one word may be an id', () => {
  assert.deepEqual(titles('01J9'), ['Search jobs for 01J9', 'Open the job 01J9'])
  assert.deepEqual(titles('connection refused'), ['Search jobs for connection refused'])
  assert.equal(commandsFor('01J9', known).at(-1)?.address, '#/jobs/01J9')
})

test('an engine that cannot list jobs offers pages and types alone', () => {
  const commands = commandsFor('e', { ...known, session: session({}) })
  assert.ok(commands.length > 0 && commands.every(({ kind }) => kind === 'Page' || kind === 'Type'))
})
