/** A DNS server on loopback that answers each question with the next of a list of addresses, as a rebinding attacker's does. */
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'

export interface RebindingDns extends AsyncDisposable {
  /** Questions for an IPv4 address so far. */
  readonly asked: string[]
  resolve(hostname: string): Promise<readonly string[]>
  close(): Promise<void>
}

const TYPE_A = 1

/** The last address is repeated for ever. A null is an answer that never comes. */
export async function rebindingDns(addresses: readonly (string | null)[]): Promise<RebindingDns> {
  const asked: string[] = []
  const server = createSocket('udp4')
  server.on('message', (message, { port, address }) => {
    const { name, type, end } = questionOf(message)
    const next = type === TYPE_A ? addresses[Math.min(asked.length, addresses.length - 1)] : undefined
    if (type === TYPE_A) asked.push(name)
    if (next === null) return
    server.send(answerTo(message, end, next), port, address)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  const resolver = new Resolver({ timeout: 30_000, tries: 1 })
  resolver.setServers([`127.0.0.1:${server.address().port}`])
  const close = async (): Promise<void> => {
    resolver.cancel()
    server.close()
    await once(server, 'close')
  }
  return { asked, resolve: (hostname) => resolver.resolve4(hostname), close, [Symbol.asyncDispose]: close }
}

function questionOf(message: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: message.readUInt16BE(at + 1), end: at + 5 }
}

/** With a lifetime of 0 s, so that nothing may keep it. */
function answerTo(question: Buffer, end: number, address: string | undefined): Buffer {
  const header = Buffer.from(question.subarray(0, 12))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(address === undefined ? 0 : 1, 6)
  header.writeUInt32BE(0, 8)
  const parts = [header, question.subarray(12, end)]
  if (address !== undefined) {
    const record = Buffer.from([0xc0, 0x0c, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4])
    parts.push(record, Buffer.from(address.split('.').map(Number)))
  }
  return Buffer.concat(parts)
}
