/** A JSON-RPC endpoint on loopback that passes calls on to a chain, and lets a test answer some of them otherwise. */
import { createServer, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

export interface RpcCall {
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

export interface RpcRelay {
  readonly url: string
  /** Set by a test. True when it has answered; else the call goes to the chain. */
  disturb: ((call: RpcCall, response: ServerResponse) => boolean | Promise<boolean>) | null
  stop(): Promise<void>
}

export async function startRpcRelay(chainUrl: string): Promise<RpcRelay> {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if ((await relay.disturb?.(JSON.parse(body), response)) === true) return
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(chainUrl, { method: 'POST', headers, body })
    response.writeHead(answer.status, headers).end(await answer.text())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const relay: RpcRelay = {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    disturb: null,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return relay
}

/** Answers a call with a result, as a node does. */
export function answerWith(response: ServerResponse, { id }: Pick<RpcCall, 'id'>, result: unknown): true {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  return true
}

/** Answers a call with an error, as a node does. */
export function refuseWith(
  response: ServerResponse,
  { id }: Pick<RpcCall, 'id'>,
  error: { readonly code: number; readonly message: string },
): true {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  return true
}
