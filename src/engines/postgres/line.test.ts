import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PgPoolClient } from './driver.ts'
import { Line } from './line.ts'

/** A line, what happened to its connections, and how to let the next one be lent. */
function lineOf() {
  const said: string[] = []
  const line = new Line(async () => {
    said.push('lends')
    return { release: (isBroken: boolean) => void said.push(isBroken ? 'drops' : 'gives back') } as PgPoolClient
  })
  return { line, said }
}

test('those who join at the same time share a connection, which goes back with the last of them', async () => {
  const { line, said } = lineOf()
  const [first, second] = await Promise.all([line.join(), line.join()])
  assert.equal(first.client, second.client)
  first.leave()
  const third = await line.join()
  second.leave()
  assert.deepEqual(said, ['lends'])
  third.leave()
  await line.join()
  assert.deepEqual(said, ['lends', 'gives back', 'lends'])
})

test('nobody joins a connection that broke, and it is dropped once', async () => {
  const { line, said } = lineOf()
  const [first, second] = await Promise.all([line.join(), line.join()])
  first.leave(true)
  const third = await line.join()
  assert.notEqual(third.client, first.client)
  second.leave()
  third.leave()
  assert.deepEqual(said, ['lends', 'lends', 'drops', 'gives back'])
})

test('a connection that could not be had is asked for anew', async () => {
  let tries = 0
  const line = new Line(async () => {
    tries += 1
    if (tries === 1) throw new Error('no server')
    return { release: () => {} } as unknown as PgPoolClient
  })
  await assert.rejects(line.join(), /no server/)
  await line.join()
  assert.equal(tries, 2)
})
