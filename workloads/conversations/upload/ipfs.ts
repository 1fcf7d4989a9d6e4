import { z } from 'zod'
import { cidOf } from './cid.ts'
import { type Caller, parseAnswer, post } from './request.ts'

const SERVICE = 'IPFS'

/** One raw block of at most one chunk, so that the content id is the one computed here. */
const ADD = '/api/v0/add?cid-version=1&raw-leaves=true&chunker=size-1048576&pin=true&progress=false'

const added = z.object({ Hash: z.string() })

/**
 * Adds and pins the content through the RPC of Kubo. Idempotent: the same bytes have the same id. A node that answers
 * another id than the one computed here has stored something else, or is no IPFS node: an error, and nothing is recorded.
 */
export async function addToIpfs(endpoint: string, content: Uint8Array<ArrayBuffer>, caller: Caller): Promise<string> {
  const cid = cidOf(content)
  const body = new FormData()
  body.append('file', new Blob([content], { type: 'application/json' }), 'learning.json')
  const { status, text } = await post(SERVICE, `${endpoint.replace(/\/+$/, '')}${ADD}`, { body }, caller)
  if (status !== 200) throw new Error(`${SERVICE} answers ${status} to add; is the endpoint the RPC of Kubo?`)
  // One JSON object per line; the last one is the file.
  const answer = added.safeParse(parseAnswer(SERVICE, text.trim().split('\n').at(-1) ?? ''))
  if (!answer.success) throw new Error(`${SERVICE} answers without a content id; is the endpoint the RPC of Kubo?`)
  if (answer.data.Hash !== cid) {
    throw new Error(`${SERVICE} answers the content id ${answer.data.Hash.slice(0, 100)} for content with ${cid}`)
  }
  return cid
}
