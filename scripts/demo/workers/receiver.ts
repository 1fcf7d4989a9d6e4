/** A program that receives webhooks: it verifies each one, and has a path that is slow and one that is missing. */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { isMillraceError } from '../../../src/errors.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { verifyWebhook } from '../../../workloads/webhooks/index.ts'

export const PATHS = Array.from({ length: 10 }, (_, index) => `/hooks/${index + 1}`)
export const MISSING = '/hooks/4'
export const SLOW = '/hooks/8'
export const SLOW_MS = 2_000

export interface Receiver {
  readonly origin: string
  /** By path, each with the id of its delivery, in the order in which they came. */
  readonly accepted: ReadonlyMap<string, readonly string[]>
  /** Requests without a valid signature. */
  readonly forged: number
  /** The secret that `webhooks add` printed for the path. */
  trust(path: string, secret: string): void
  /** From now on the missing path answers. */
  repair(): void
  close(): Promise<void>
}

export async function startReceiver(): Promise<Receiver> {
  const secrets = new Map<string, string>()
  const accepted = new Map<string, string[]>(PATHS.map((path) => [path, []]))
  let [forged, isRepaired] = [0, false]
  const answer = async (path: string, headers: NodeJS.Dict<string | string[]>, body: string): Promise<number> => {
    if (path === MISSING && !isRepaired) return 404
    try {
      await verifyWebhook({ headers, body }, secrets.get(path) ?? [])
    } catch (error) {
      if (!isMillraceError(error)) throw error
      forged += 1
      return 401
    }
    if (path === SLOW) await systemClock.sleep(SLOW_MS)
    accepted.get(path)?.push(String(headers['webhook-id']))
    return 204
  }
  const server = createServer(async (request, response) => {
    response.writeHead(await answer(request.url ?? '', request.headers, await text(request))).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    origin: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    accepted,
    get forged() {
      return forged
    },
    trust: (path, secret) => void secrets.set(path, secret),
    repair: () => {
      isRepaired = true
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
