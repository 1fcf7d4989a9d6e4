import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EngineError, OptionError } from '../errors.ts'
import { LostClaims } from './lost-claims.ts'

const lost = new EngineError('ERR_STORAGE_FAILED', 'the connection was lost')

test('a claim in doubt is looked for until it is found, also after looks that failed or found nothing', async () => {
  const looks: string[][] = []
  const found = Promise.withResolvers<void>()
  const answers: (() => readonly string[])[] = [
    () => {
      throw lost
    },
    () => [],
    () => {
      found.resolve()
      return ['one']
    },
  ]
  const claims = new LostClaims<string>(async (given) => {
    looks.push([...given])
    return answers.shift()?.() ?? []
  })
  await assert.rejects(
    claims.guard('one', () => Promise.reject(lost)),
    lost,
  )
  // The looks alone do not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  await found.promise
  await claims.close()
  clearInterval(alive)
  assert.deepEqual(looks, [['one'], ['one'], ['one']])
})

test('a claim that is lost after an earlier one was found, or while one is not found yet, is looked for at once', async () => {
  const looks: string[][] = []
  const heard = new Map(['one', 'two', 'three'].map((claim) => [claim, Promise.withResolvers<void>()]))
  const claims = new LostClaims<string>(async (given) => {
    looks.push([...given])
    for (const claim of given) heard.get(claim)?.resolve()
    // 'two' never comes back: the pause until its next look grows.
    return given.filter((claim) => claim !== 'two')
  })
  const alive = setInterval(() => {}, 1_000)
  for (const claim of ['one', 'two', 'three']) {
    await assert.rejects(
      claims.guard(claim, () => Promise.reject(lost)),
      lost,
    )
    await heard.get(claim)?.promise
  }
  await claims.close()
  clearInterval(alive)
  const found = looks.flat().filter((claim) => claim !== 'two')
  assert.deepEqual(found, ['one', 'three'], 'each that was found is asked for once')
})

test('an answer is passed on, and an error that says that nothing happened is looked for by nobody', async () => {
  const claims = new LostClaims<string>(() => assert.fail('nothing is in doubt'))
  assert.equal(await claims.guard('one', async () => 7), 7)
  const refusals = [new EngineError('ERR_STORAGE_OPEN', 'nothing was sent'), new OptionError('no')]
  for (const error of refusals) {
    await assert.rejects(
      claims.guard('one', () => Promise.reject(error)),
      error,
    )
  }
  await claims.close()
})

test('an engine that closes does not wait for a store that is silent', async () => {
  const claims = new LostClaims<string>(() => new Promise(() => {}))
  await assert.rejects(
    claims.guard('one', () => Promise.reject(lost)),
    lost,
  )
  const alive = setInterval(() => {}, 1_000)
  await claims.close()
  clearInterval(alive)
})
