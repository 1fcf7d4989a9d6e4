import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseCommand, roundSeed } from './options.ts'
import { figuresOf, published, replaced, rulesTable } from './publish.ts'
import { newTotals } from './report.ts'

const play = (...args: readonly string[]) => {
  const command = parseCommand(['--engine', 'sqlite', ...args])
  assert.ok(command.do === 'play')
  return command.options
}

test('the totals of several runs of an engine are added up, and the rules are those of the checker', () => {
  const run = {
    ...newTotals(play('--seed', '7')),
    rounds: 2,
    jobs: 1_200,
    faults: { kill: 3 },
    nemeses: { kill: 'ends it' },
  }
  const other = { ...run, seed: 8, faults: { kill: 1, pause: 2 } }
  const text = figuresOf([run, other])
  assert.match(text, /\| sqlite \| 2 400 \| 0 \| 0 \| 6 \| 0 \| 4 \|/)
  assert.match(text, /--seed 7 --rounds 2 .*--seed 8 --rounds 2 /)
  assert.match(text, /\| kill \| ends it \| 4 \|/)
  const page = readFileSync(new URL('../../docs/proof.md', import.meta.url), 'utf8')
  assert.ok(replaced(page, 'figures', text).includes(text))
  assert.equal(
    replaced(page, 'rules', rulesTable()),
    page,
    'docs/proof.md has other rules; run npm run proof -- --publish',
  )
  assert.equal(
    replaced(page, 'figures', figuresOf(published())),
    page,
    'docs/proof.md has other figures than test/proof/results',
  )
  assert.throws(() => replaced(page, 'nothing', ''), /has no lines/)
})

test('a run is told what to play, and refuses what it does not know', () => {
  assert.deepEqual(play('--nemesis', 'kill,clock', '--minutes', '5', '--seed', '7').nemeses, ['kill', 'clock'])
  assert.equal(play('--minutes', '5').rounds, null)
  assert.equal(play().rounds, 1)
  for (const args of [
    ['--seed', 'x'],
    ['--rounds', '0'],
    ['--jobs', '1.5'],
    ['--colour'],
    ['seven'],
    ['--engine', 'oracle'],
  ]) {
    assert.throws(() => play(...args), Error, args.join(' '))
  }
  assert.equal(roundSeed(7, 0), 7, 'a round is played again by its own seed')
  assert.equal(new Set(Array.from({ length: 500 }, (_, round) => roundSeed(7, round))).size, 500)
})
