/**
 * A page of the dashboard that is left open: the event stream, and its requests at the pace at which the dashboard makes them.
 * Arguments: the address of the server, and `jobs` or `type`.
 */
const [url, page] = process.argv.slice(2)

const REQUESTS: Readonly<Record<string, readonly { readonly path: string; readonly everyMs: number }[]>> = {
  jobs: [{ path: 'jobs?limit=50', everyMs: 2_000 }],
  type: [
    { path: 'queues/bench', everyMs: 2_000 },
    { path: 'workers', everyMs: 5_000 },
    { path: 'dead-letters/groups?type=bench', everyMs: 5_000 },
    { path: 'history?range=15m&type=bench', everyMs: 10_000 },
  ],
}

async function get(path: string): Promise<Response> {
  const answer = await fetch(`${url}/api/v1/${path}`)
  if (!answer.ok || answer.body === null) throw new Error(`${path} answered ${answer.status}`)
  return answer
}

async function read(path: string): Promise<void> {
  await (await get(path)).text()
}

const requests = REQUESTS[page ?? '']
if (requests === undefined) throw new Error(`there is no page ${page}`)
const { body } = await get('events')
await read('overview')
for (const { path, everyMs } of requests) {
  await read(path)
  setInterval(() => void read(path), everyMs)
}
process.send?.('open')
let bytes = 0
for await (const piece of body ?? []) bytes += piece.length
throw new Error(`the stream ended after ${bytes} bytes`)
