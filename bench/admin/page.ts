/** A page that is left open on the list of jobs, as the dashboard has it: the event stream, and the list every two seconds. */
const [url] = process.argv.slice(2)
const LIST_MS = 2_000

async function get(path: string): Promise<Response> {
  const answer = await fetch(`${url}/api/v1/${path}`)
  if (!answer.ok || answer.body === null) throw new Error(`${path} answered ${answer.status}`)
  return answer
}

async function list(): Promise<void> {
  await (await get('jobs?limit=50')).text()
}

const { body } = await get('events')
await (await get('overview')).text()
await list()
setInterval(() => void list(), LIST_MS)
process.send?.('open')
let bytes = 0
for await (const piece of body ?? []) bytes += piece.length
throw new Error(`the stream ended after ${bytes} bytes`)
