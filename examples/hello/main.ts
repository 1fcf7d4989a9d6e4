/**
 * Shows the least there is: a job, a worker, a result. Everything is in one process and one SQLite file.
 *
 *     node examples/hello/main.ts Ann
 */
import { open } from 'millrace'
import { greet } from './jobs.ts'

const mill = await open('sqlite:./hello.db')
await mill.work([greet])

const receipt = await mill.enqueue(greet, { name: process.argv[2] ?? 'world' })
console.log(await mill.result(receipt, { timeout: '10s' }))

await mill.close() // stops the worker, then closes the file
