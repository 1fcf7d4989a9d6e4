/**
 * A job in your own SQLite transaction: the user's row and the welcome job are committed together, or not at all.
 *
 *     node examples/transaction/main.ts
 */
import { DatabaseSync } from 'node:sqlite'
import { defineJob, open } from 'millrace'
import { z } from 'zod'

const welcome = defineJob({
  type: 'welcome',
  payload: z.object({ name: z.string() }),
  run: ({ payload }) => `welcomed ${payload.name}`,
})

const mill = await open('sqlite:./app.db')
const db = new DatabaseSync('./app.db')
db.exec('CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY)')

/** One transaction for the row and the job. An error rolls back both. */
async function signUp(name: string): Promise<string | null> {
  db.exec('BEGIN IMMEDIATE')
  try {
    const receipt = await mill.enqueue(welcome, { name }, { within: db })
    db.prepare('INSERT INTO users VALUES (?)').run(name) // throws for a taken name, after the job was enqueued
    db.exec('COMMIT')
    return receipt.id
  } catch (error) {
    db.exec('ROLLBACK')
    console.log(`${name} was not signed up: ${error instanceof Error ? error.message : error}`)
    return null
  }
}

await mill.work([welcome])
const id = await signUp('Ann')
if (id !== null) console.log(await mill.result(id))
await signUp('Ann')

const { users } = db.prepare('SELECT count(*) AS users FROM users').get() ?? {}
console.log(`${users} user, ${(await mill.jobs()).length} job`)
db.close()
await mill.close()
