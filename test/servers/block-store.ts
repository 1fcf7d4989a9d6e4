/**
 * A small block store that speaks the part of Kubo's RPC that uploads use: add, cat and block/stat. It stores the blocks and
 * computes their content ids itself, from the CID specification, not with the code under test.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'

const CHUNK_BYTES = 1_048_576

export interface BlockStore {
  readonly url: string
  /** Content by content id. */
  readonly blocks: ReadonlyMap<string, Buffer>
  /** How many times something was added. */
  readonly adds: number
  /** Set by a test: how `add` is answered instead. */
  disturb: ((response: ServerResponse) => void) | null
  stop(): Promise<void>
}

class Blocks implements BlockStore {
  readonly blocks = new Map<string, Buffer>()
  adds = 0
  disturb: BlockStore['disturb'] = null
  readonly #server: Server

  constructor(server: Server) {
    this.#server = server
  }

  get url(): string {
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', this.url)
    // As Kubo: its RPC takes POST alone.
    if (request.method !== 'POST') return respond(response, 405, { Message: '405 - Method Not Allowed' })
    if (pathname === '/api/v0/add') return this.#add(request, response, searchParams)
    const block = this.blocks.get(searchParams.get('arg') ?? '')
    if (block === undefined) return respond(response, 500, { Message: 'block was not found locally' })
    if (pathname === '/api/v0/cat') return void response.end(block)
    if (pathname === '/api/v0/block/stat') {
      return respond(response, 200, { Key: searchParams.get('arg'), Size: block.length })
    }
    respond(response, 404, { Message: 'no such command' })
  }

  async #add(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): Promise<void> {
    const content = await fileOf(request)
    this.adds += 1
    if (this.disturb !== null) return this.disturb(response)
    const isRaw = query.get('cid-version') === '1' && query.get('raw-leaves') === 'true'
    if (!isRaw || content.length > CHUNK_BYTES) return respond(response, 500, { Message: 'only single raw blocks' })
    const cid = rawCid(content)
    this.blocks.set(cid, content)
    respond(response, 200, { Name: 'learning.json', Hash: cid, Size: String(content.length) })
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

function respond(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
}

/** The first file of a multipart body, by Node's own parser. */
async function fileOf(request: IncomingMessage): Promise<Buffer> {
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  const form = await new Response(new Uint8Array(await buffer(request)), { headers }).formData()
  const file = form.get('file')
  if (!(file instanceof Blob)) throw new Error('add without a file')
  return Buffer.from(await file.arrayBuffer())
}

/** CIDv1 of a raw block: the bits of version, codec and multihash in groups of five. */
function rawCid(content: Buffer): string {
  const bytes = Buffer.concat([Buffer.from('01551220', 'hex'), createHash('sha256').update(content).digest()])
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const groups = bits.match(/.{1,5}/g) ?? []
  return `b${groups.map((group) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(group.padEnd(5, '0'), 2)]).join('')}`
}

export async function startBlockStore(): Promise<BlockStore> {
  const server = createServer((request, response) => {
    store.answer(request, response).catch((error: unknown) => respond(response, 500, { Message: String(error) }))
  })
  const store = new Blocks(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return store
}
