import { createHash } from 'node:crypto'
import { z } from 'zod'
import { NonRetryable, Postpone } from '../../../src/errors.ts'
import { REGISTRY_ABI } from './contract/learning-registry.ts'
import type { Caller } from './request.ts'
import { hexText, quantity, Rpc, RpcError } from './rpc.ts'
import { loadViem } from './viem.ts'

export type Hex = `0x${string}`

export interface ChainSettings {
  readonly rpcUrl: string
  readonly chainId: number
  readonly contractAddress: string
}

export interface Fees {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

export interface RecordedEntry {
  readonly cid: string
  readonly blockNumber: number
}

export interface RecordedEvent {
  readonly txHash: Hex
  readonly blockNumber: number
  readonly blockHash: Hex
}

/** `known` also when the node had it already. `passed`: the nonce is used; look at the receipts. */
export type SendResult = 'known' | 'passed' | 'underpriced' | 'no-funds'

/** What geth, reth, Erigon, Nethermind, Besu and anvil say. There are no codes for it. */
const KNOWN = /already ?known|already imported|\bknown transaction|already in (?:the )?mempool/i
const PASSED = /nonce(?: is)? too low|old ?nonce|already mined/i
const NO_FUNDS = /insufficient ?(?:funds|balance)|exceeds account balance/i
const UNDERPRICED = /underpriced|less than block base fee|fee ?too ?low|below configured minimum|could not replace/i
const FULL = /(?:tx|mem|transaction )pool is full/i
const FULL_WAIT = '30s'

const blockSchema = z.object({ hash: hexText, baseFeePerGas: quantity.optional() })
const transactionSchema = z.object({ hash: hexText })
const receiptSchema = z.object({ status: quantity, blockNumber: quantity })
const logSchema = z.object({ transactionHash: hexText, blockNumber: quantity, blockHash: hexText })

/** The id of a learning's record: SHA-256 of the learning's id, so that the chain does not tell when it was made. */
export function recordId(learningId: string): Hex {
  return `0x${createHash('sha256').update(learningId).digest('hex')}`
}

/** The chain as an upload sees it. Every answer is of one moment: the next one may come after a reorganisation. */
export class Chain {
  readonly chainId: number
  readonly contract: Hex
  /** The hash of block 0. */
  readonly genesis: string
  readonly #rpc: Rpc
  readonly #viem: typeof import('viem')

  private constructor(
    settings: { readonly chainId: number; readonly contract: Hex; readonly genesis: string },
    rpc: Rpc,
    viem: typeof import('viem'),
  ) {
    this.chainId = settings.chainId
    this.contract = settings.contract
    this.genesis = settings.genesis
    this.#rpc = rpc
    this.#viem = viem
  }

  /** Refuses a node of another chain, and an address where no contract is. */
  static async connect({ rpcUrl, chainId, contractAddress }: ChainSettings, caller: Caller): Promise<Chain> {
    const { viem } = await loadViem()
    const rpc = new Rpc(rpcUrl, caller)
    await checkChainId(rpc, chainId)
    const contract: Hex = `0x${contractAddress.slice(2)}`
    const [code, genesis] = await Promise.all([
      rpc.call('eth_getCode', [contract, 'latest'], hexText),
      rpc.call('eth_getBlockByNumber', ['0x0', false], blockSchema),
    ])
    if (code === '0x') {
      throw new NonRetryable(
        `no contract is at ${contract} on chain ${chainId}: it was never deployed there, or the chain was started again`,
      )
    }
    return new Chain({ chainId, contract, genesis: genesis.hash }, rpc, viem)
  }

  async head(): Promise<number> {
    return Number(await this.#rpc.call('eth_blockNumber', [], quantity))
  }

  async blockHash(blockNumber: number): Promise<string | null> {
    const block = await this.#rpc.call('eth_getBlockByNumber', [toHex(blockNumber), false], blockSchema.nullable())
    return block?.hash ?? null
  }

  /** The next nonce of a sender: at the head, with what the node has in its pool, or as of a block. */
  async transactionCount(sender: string, at: 'latest' | 'pending' | number): Promise<number> {
    return Number(await this.#rpc.call('eth_getTransactionCount', [sender, tagOf(at)], quantity))
  }

  balance(sender: string): Promise<bigint> {
    return this.#rpc.call('eth_getBalance', [sender, 'latest'], quantity)
  }

  /** Whether the node has it, mined or in its pool. */
  async knows(hash: string): Promise<boolean> {
    return (await this.#rpc.call('eth_getTransactionByHash', [hash], transactionSchema.nullable())) !== null
  }

  /** Null while it is not mined. */
  async receipt(hash: string): Promise<{ readonly succeeded: boolean; readonly blockNumber: number } | null> {
    const receipt = await this.#rpc.call('eth_getTransactionReceipt', [hash], receiptSchema.nullable())
    return receipt && { succeeded: receipt.status === 1n, blockNumber: Number(receipt.blockNumber) }
  }

  fees(): Promise<Fees> {
    return suggestFees(this.#rpc)
  }

  async send(raw: string): Promise<SendResult> {
    try {
      await this.#rpc.call('eth_sendRawTransaction', [raw], hexText)
      return 'known'
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      if (KNOWN.test(error.message)) return 'known'
      if (PASSED.test(error.message)) return 'passed'
      if (NO_FUNDS.test(error.message)) return 'no-funds'
      if (UNDERPRICED.test(error.message)) return 'underpriced'
      if (FULL.test(error.message)) throw new Postpone(FULL_WAIT, 'the node takes no more transactions now')
      throw error
    }
  }

  recordCall(id: Hex, cid: string): Hex {
    return this.#viem.encodeFunctionData({ abi: REGISTRY_ABI, functionName: 'record', args: [id, cid] })
  }

  /** The gas of a record. A revert is an error, except that of a repeated id. */
  async estimateRecord(sender: string, data: Hex): Promise<bigint | 'already-recorded' | 'no-funds'> {
    try {
      return await this.#rpc.call('eth_estimateGas', [{ from: sender, to: this.contract, data }], quantity)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      if (this.#isAlreadyRecorded(error.data)) return 'already-recorded'
      if (NO_FUNDS.test(error.message)) return 'no-funds'
      if (error.data !== null || /revert/i.test(error.message)) {
        throw new NonRetryable(
          `the contract ${this.contract} refuses the record (${error.message}); is it the registry?`,
        )
      }
      throw error
    }
  }

  #isAlreadyRecorded(data: string | null): boolean {
    return data?.startsWith(this.#viem.toFunctionSelector('AlreadyRecorded(bytes32)')) ?? false
  }

  /** Null where nothing is recorded under this id: at the head, or as of a block. */
  async recordOf(id: Hex, at: 'latest' | number = 'latest'): Promise<RecordedEntry | null> {
    const call = { abi: REGISTRY_ABI, functionName: 'recordOf' } as const
    const data = this.#viem.encodeFunctionData({ ...call, args: [id] })
    const answer = await this.#rpc.call('eth_call', [{ to: this.contract, data }, tagOf(at)], hexText)
    // Before the contract was deployed.
    if (answer === '0x' && at !== 'latest') return null
    let entry: readonly [by: Hex, blockNumber: bigint, cid: string]
    try {
      entry = this.#viem.decodeFunctionResult({ ...call, data: answer })
    } catch {
      throw new NonRetryable(`the contract at ${this.contract} is not the registry: it does not answer recordOf`)
    }
    const [by, blockNumber, cid] = entry
    return BigInt(by) === 0n ? null : { cid, blockNumber: Number(blockNumber) }
  }

  /** The event of a record. Null when a reorganisation has just removed it. */
  async recordEvent(id: Hex, { blockNumber }: RecordedEntry): Promise<RecordedEvent | null> {
    const [event] = this.#viem.encodeEventTopics({ abi: REGISTRY_ABI, eventName: 'Recorded' })
    const find = (fromBlock: string, toBlock: string) => {
      const filter = { address: this.contract, topics: [event, id], fromBlock, toBlock }
      return this.#rpc.call('eth_getLogs', [filter], z.array(logSchema))
    }
    const block = toHex(blockNumber)
    const inBlock = await find(block, block)
    // On some rollups the contract sees the block numbers of another chain.
    const [log] = inBlock.length > 0 ? inBlock : await find('earliest', 'latest')
    if (log === undefined) return null
    return { txHash: log.transactionHash, blockNumber: Number(log.blockNumber), blockHash: log.blockHash }
  }
}

/** Room for the base fee to double before the transaction is mined. */
export async function suggestFees(rpc: Rpc): Promise<Fees> {
  const [block, maxPriorityFeePerGas] = await Promise.all([
    rpc.call('eth_getBlockByNumber', ['latest', false], blockSchema),
    rpc.call('eth_maxPriorityFeePerGas', [], quantity),
  ])
  if (block.baseFeePerGas === undefined) {
    throw new NonRetryable('the chain has no base fee (EIP-1559), which uploads need; use another chain')
  }
  return { maxFeePerGas: block.baseFeePerGas * 2n + maxPriorityFeePerGas, maxPriorityFeePerGas }
}

/** Refuses a node of another chain. */
export async function checkChainId(rpc: Rpc, chainId: number): Promise<void> {
  const answered = Number(await rpc.call('eth_chainId', [], quantity))
  if (answered === chainId) return
  throw new NonRetryable(`the chain has the id ${answered}, not ${chainId} as configured; nothing was signed`)
}

function tagOf(at: 'latest' | 'pending' | number): string {
  return typeof at === 'number' ? toHex(at) : at
}

function toHex(number: number): Hex {
  return `0x${number.toString(16)}`
}
