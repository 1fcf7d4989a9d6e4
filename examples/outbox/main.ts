/**
 * Transactions with Kafka: the order and its shipping job are committed together in SQLite, and a forwarder sends the job to
 * the broker. A job that was rolled back is never sent, and the broker may be down meanwhile.
 *
 *     node examples/outbox/main.ts kafka://127.0.0.1:9092?group=shop
 */
import { DatabaseSync } from 'node:sqlite'
import { defineJob, open } from 'millrace'
import { openOutbox } from 'millrace/outbox'
import { z } from 'zod'

const [target = 'kafka://127.0.0.1:9092?group=shop'] = process.argv.slice(2)
const shipped = Promise.withResolvers<string>()
const ship = defineJob({
  type: 'ship-order',
  payload: z.object({ article: z.string() }),
  backoff: { kind: 'fixed', delay: '1s' },
  run: ({ payload }) => shipped.resolve(`shipped ${payload.article}`),
})

const outbox = await openOutbox({
  store: 'sqlite:./shop.db',
  target,
  onError: (error) => console.log(error instanceof Error ? error.message : error),
})
const mill = await open(outbox.engine)
const db = new DatabaseSync('./shop.db')
db.exec('CREATE TABLE IF NOT EXISTS orders (article TEXT PRIMARY KEY)')

/** One transaction for the row and the job. */
async function order(article: string): Promise<void> {
  db.exec('BEGIN IMMEDIATE')
  try {
    await mill.enqueue(ship, { article }, { key: article, within: db })
    db.prepare('INSERT INTO orders VALUES (?)').run(article) // throws for an existing order
    db.exec('COMMIT')
  } catch (error) {
    db.exec('ROLLBACK')
    console.log(`${article} was not ordered: ${error instanceof Error ? error.message : error}`)
  }
}

await mill.work([ship])
await order('lamp')
await order('lamp')
console.log(await shipped.promise)
db.close()
await mill.close()
