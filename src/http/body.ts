import { PAYLOAD_BYTES_MAX_DEFAULT } from '../job/options.ts'
import { Refused } from './problems.ts'

/** A payload of the largest size, written with spaces, and what stands around it. */
export const BODY_BYTES_MAX = 2 * PAYLOAD_BYTES_MAX_DEFAULT

/** The JSON of a request; an empty body is an empty object. Reads no more than the limit, whatever the length says. */
export async function readJson(request: Request): Promise<unknown> {
  const text = await readText(request)
  if (text === '') return {}
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new Refused(415, 'ERR_MEDIA_TYPE', `send JSON, with 'Content-Type: application/json'`)
  }
  try {
    return JSON.parse(text)
  } catch {
    throw new Refused(400, 'ERR_REQUEST_INVALID', 'the body is not JSON')
  }
}

async function readText({ body, headers }: Request): Promise<string> {
  if (Number(headers.get('content-length') ?? 0) > BODY_BYTES_MAX) throw tooLarge()
  if (body === null) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  // A stream of a request yields bytes, whatever its type says.
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    if (bytes > BODY_BYTES_MAX) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function tooLarge(): Refused {
  return new Refused(
    413,
    'ERR_BODY_TOO_LARGE',
    `the body is above ${BODY_BYTES_MAX} bytes; store large data elsewhere and send a reference`,
  )
}
