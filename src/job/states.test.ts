import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MillraceError } from '../errors.ts'
import {
  assertMove,
  canMove,
  ENDS,
  isFinished,
  JOB_STATES,
  type Mover,
  STORED_STATES,
  type StoredState,
  shownState,
  storedAs,
} from './states.ts'

type Move = `${StoredState} ${StoredState}`

const AUTOMATIC: readonly Move[] = [
  'queued in_progress',
  'in_progress completed',
  'in_progress failed',
  'in_progress queued',
  'failed queued',
  'failed dead_letter',
]
const ADDED: Readonly<Record<Mover, readonly Move[]>> = {
  core: [],
  producer: ['queued dead_letter'],
  operator: ['queued dead_letter', 'in_progress dead_letter', 'dead_letter queued'],
}

// B21 X004
test('five states are stored', () => {
  assert.deepEqual(STORED_STATES, ['queued', 'in_progress', 'completed', 'failed', 'dead_letter'])
})

test('a job that was ended shows why as its state, and only a dead letter shows dead_letter', () => {
  for (const ended of ENDS) assert.equal(shownState('dead_letter', ended), ended)
  for (const stored of STORED_STATES) assert.equal(shownState(stored, null), stored)
  // Another program may have put the job back without clearing the reason.
  assert.equal(shownState('queued', 'cancelled'), 'queued')
})

test('each shown state is stored in one way', () => {
  for (const state of JOB_STATES) {
    const { stored, ended } = storedAs(state)
    assert.equal(shownState(stored, ended), state)
  }
})

test('completed, dead and ended jobs have finished', () => {
  const live = ['queued', 'in_progress', 'failed']
  for (const state of JOB_STATES) assert.equal(isFinished(state), !live.includes(state), state)
})

// B43 B44 B45 B46 B47 B48 B49 B50 B51 X082
test('of the 5 × 5 pairs exactly the listed ones are moves, for each who may cause them', () => {
  for (const by of ['core', 'producer', 'operator'] as const) {
    for (const from of STORED_STATES) {
      for (const to of STORED_STATES) {
        const move: Move = `${from} ${to}`
        const allowed = AUTOMATIC.includes(move) || ADDED[by].includes(move)
        assert.equal(canMove(from, to, by), allowed, `${move} by ${by}`)
        if (allowed) assertMove(from, to, by)
        else {
          assert.throws(
            () => assertMove(from, to, by),
            (error) =>
              error instanceof MillraceError &&
              error.code === 'ERR_STATE_TRANSITION' &&
              error.message.includes(`from ${from} to ${to} (by ${by})`),
          )
        }
      }
    }
  }
})

// B50
test('nothing automatic moves a dead letter', () => {
  for (const to of STORED_STATES) assert.equal(canMove('dead_letter', to), false, to)
})
