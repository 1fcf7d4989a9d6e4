import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CompiledQuery, Kysely, PostgresDialect, type Transaction } from 'kysely'
import { useUserDatabase, welcome } from './user-database.ts'

interface Tables {
  readonly users: { readonly name: string }
}

const database = useUserDatabase()

/** Statements of Millrace as statements of the transaction. */
const within = (trx: Transaction<Tables>) => ({
  query: ({ text, values }: { text: string; values: readonly unknown[] }) =>
    trx.executeQuery(CompiledQuery.raw(text, [...values])),
})

async function signUp(db: Kysely<Tables>, name: string): Promise<string> {
  return db.transaction().execute(async (trx) => {
    const receipt = await database().mill.enqueue(welcome, { name }, { within: within(trx) })
    await trx.insertInto('users').values({ name }).execute()
    return receipt.id
  })
}

test('a job is stored with the rows of a Kysely transaction, or not at all', async () => {
  const { mill, pool, stored } = database()
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const id = await signUp(db, 'Ann')
  assert.deepEqual(await stored(), [['Ann'], ['Ann']])
  await assert.rejects(signUp(db, 'Ann'), /users_pkey/)
  assert.deepEqual(await stored(), [['Ann'], ['Ann']])
  await mill.work([welcome])
  assert.equal(await mill.result(id), 'welcomed Ann')
})

test('outside of a transaction it is refused, and says so', async () => {
  const { mill, pool, stored } = database()
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const outside = {
    query: ({ text, values }: { text: string; values: readonly unknown[] }) =>
      db.executeQuery(CompiledQuery.raw(text, [...values])),
  }
  const before = await stored()
  await assert.rejects(mill.enqueue(welcome, { name: 'Dan' }, { within: outside }), /run BEGIN on it first/)
  await assert.rejects(mill.enqueue(welcome, { name: 'Dan' }, { within: pool }), /a pg client/)
  assert.deepEqual(await stored(), before)
})
