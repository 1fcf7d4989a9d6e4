import { z } from 'zod'
import { Offline, Postpone } from '../../../src/errors.ts'
import { type Caller, parseAnswer, post } from './request.ts'

const SERVICE = 'the chain'
const MESSAGE_CHARS_MAX = 300

/** The node understood the call and refused it. */
export class RpcError extends Error {
  readonly data: string | null

  constructor(method: string, message: string, data: string | null) {
    super(`${SERVICE} refuses ${method}: ${message}`)
    this.name = 'RpcError'
    this.data = data
  }
}

const refusalSchema = z.object({ code: z.number().optional(), message: z.string(), data: z.unknown().optional() })
const envelope = z.union([
  z.object({ error: refusalSchema }),
  z.object({ id: z.union([z.number(), z.string()]), result: z.unknown() }),
])

/** A number as JSON-RPC writes it. */
export const quantity = z
  .string()
  .regex(/^0x[0-9a-fA-F]+$/)
  .transform(BigInt)
export const hexText = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])

/** Calls of one JSON-RPC endpoint, by plain fetch. */
export class Rpc {
  readonly #url: string
  readonly #caller: Caller
  #calls = 0

  constructor(url: string, caller: Caller) {
    this.#url = url
    this.#caller = caller
  }

  async call<Schema extends z.ZodType>(
    method: string,
    params: readonly unknown[],
    schema: Schema,
  ): Promise<z.output<Schema>> {
    this.#calls += 1
    const id = this.#calls
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    const init = { body, headers: { 'content-type': 'application/json' } }
    const { status, text } = await post(SERVICE, this.#url, init, this.#caller)
    const answer = envelope.safeParse(parseAnswer(`${SERVICE} (status ${status})`, text))
    if (!answer.success) throw new Error(`${SERVICE} answers ${method} with ${status} and no JSON-RPC result`)
    if ('error' in answer.data) throw refusal(method, answer.data.error)
    // A cache or proxy that mixes up answers would decide about nonces otherwise.
    if (String(answer.data.id) !== String(id)) throw new Error(`${SERVICE} answers ${method} with that of another call`)
    const result = schema.safeParse(answer.data.result)
    if (!result.success) throw new Error(`${SERVICE} answers ${method} with a result of an unexpected form`)
    return result.data
  }
}

/** The block that was asked for is gone since its number was read. */
const REORGANISED = /block ?out ?of ?range|header not found|unknown block/i

/** Providers that limit the rate say so with a status of 200 too. */
const LIMITED_CODES: ReadonlySet<number | undefined> = new Set([-32_005, 429])
const LIMITED = /rate limit|too many requests/i

function refusal(method: string, { code, message, data }: z.infer<typeof refusalSchema>): Error {
  // A search of too many blocks has the same code, and waiting does not help there.
  if (LIMITED.test(message) || (LIMITED_CODES.has(code) && method !== 'eth_getLogs')) {
    return new Offline(`${SERVICE} limits the rate of calls`)
  }
  if (REORGANISED.test(message)) return new Postpone('2s', 'the chain is being reorganised')
  // Proxies in front of a node repeat their address, with its access key.
  const told = message.replace(/\b\w+:\/\/\S+/g, '[url]').slice(0, MESSAGE_CHARS_MAX)
  return new RpcError(method, told, revertData(data))
}

/** Nodes put the bytes of a revert into `data` itself, or into an object there. */
function revertData(data: unknown): string | null {
  if (typeof data === 'string') return /0x[0-9a-fA-F]*/.exec(data)?.[0] ?? null
  return typeof data === 'object' && data !== null && 'data' in data ? revertData(data.data) : null
}
