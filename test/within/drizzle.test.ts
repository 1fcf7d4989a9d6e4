import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drizzle } from 'drizzle-orm/node-postgres'
import { pgTable, text } from 'drizzle-orm/pg-core'
import { useUserDatabase, welcome } from './user-database.ts'

const database = useUserDatabase()
const users = pgTable('users', { name: text().primaryKey() })

async function signUp(name: string): Promise<string> {
  const { pool, mill } = database()
  const client = await pool.connect()
  try {
    // On a client of its own, `transaction` begins and commits on that client, so the job is part of it.
    return await drizzle(client).transaction(async (tx) => {
      const receipt = await mill.enqueue(welcome, { name }, { within: client })
      await tx.insert(users).values({ name })
      return receipt.id
    })
  } finally {
    client.release()
  }
}

test('a job is stored with the rows of a Drizzle transaction, or not at all', async () => {
  const { mill, stored } = database()
  const id = await signUp('Ann')
  assert.deepEqual(await stored(), [['Ann'], ['Ann']])
  await assert.rejects(signUp('Ann'), /users/)
  assert.deepEqual(await stored(), [['Ann'], ['Ann']])
  await mill.work([welcome])
  assert.equal(await mill.result(id), 'welcomed Ann')
})

test('a savepoint of Drizzle takes its job back with it', async () => {
  const { pool, mill, stored } = database()
  const client = await pool.connect()
  await drizzle(client).transaction(async (tx) => {
    await tx.insert(users).values({ name: 'Bea' })
    await mill.enqueue(welcome, { name: 'Bea' }, { within: client })
    const inner = tx.transaction(async (nested) => {
      await nested.insert(users).values({ name: 'Cid' })
      await mill.enqueue(welcome, { name: 'Cid' }, { within: client })
      nested.rollback()
    })
    await assert.rejects(inner, /Rollback/)
  })
  client.release()
  assert.deepEqual(await stored(), [
    ['Ann', 'Bea'],
    ['Ann', 'Bea'],
  ])
})
