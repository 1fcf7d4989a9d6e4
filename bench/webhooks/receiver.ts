/** The receiver of the benchmark, in a process of its own: it answers 204 and counts what it got by delivery id. */
import { createServer } from 'node:http'

const received = new Map<string, number>()
const server = createServer((request, response) => {
  const id = String(request.headers['webhook-id'])
  received.set(id, (received.get(id) ?? 0) + 1)
  request.resume()
  response.writeHead(204).end()
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: Object(server.address()).port }))
process.on('message', () => {
  const repeated = [...received.values()].filter((count) => count > 1).length
  process.send?.({ received: received.size, repeated })
})
process.once('disconnect', () => process.exit())
