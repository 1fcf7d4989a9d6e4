/** Adds jobs as a program does that has never heard of Millrace: `node bullmq-program.ts <url> <prefix> <queue>`. */
import { text } from 'node:stream/consumers'
import { Queue } from 'bullmq'

const [url = '', prefix = '', name = ''] = process.argv.slice(2)
const { hostname, port, username, password } = new URL(url)
const connection = { host: hostname, port: Number(port), username, password: decodeURIComponent(password) }
const queue = new Queue(name, { connection, prefix })
const jobs: readonly { readonly data: string; readonly jobId?: string }[] = JSON.parse(await text(process.stdin))
await queue.addBulk(
  jobs.map(({ data, jobId }) => ({
    name: 'made-elsewhere',
    data: JSON.parse(data),
    ...(jobId !== undefined && { opts: { jobId } }),
  })),
)
await queue.close()
