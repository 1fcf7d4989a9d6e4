/**
 * A job, a worker and a result, in one process and one SQLite file.
 *
 *     node examples/hello/main.ts Ann
 */
import { open } from 'millrace'
import { greet } from './jobs.ts'

await using mill = await open('sqlite:./hello.db') // at the end: stops the worker, then closes the file
await mill.work([greet])

const receipt = await mill.enqueue(greet, { name: process.argv[2] ?? 'world' })
console.log(await mill.result(receipt, { timeout: '10s' }))
