/** Looks again at everything that the demonstration claims, by other ways than the pipeline's own. */
import { createHash } from 'node:crypto'
import { globSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Anvil } from '../../../test/servers/anvil.ts'
import type { BlockStore } from '../../../test/servers/block-store.ts'
import { REGISTRY_ABI } from '../../../workloads/conversations/upload/contract/learning-registry.ts'
import type { Learnt } from './store.ts'

export interface Verified {
  readonly isStored: boolean
  readonly isRecorded: boolean
  readonly confirmations: number
}

/** The store returns bytes that hash to the content id and hold the learning; the contract holds the id, once. */
export async function verifyUpload(
  learnt: Learnt,
  { anvil, store, contract }: { readonly anvil: Anvil; readonly store: BlockStore; readonly contract: string },
): Promise<Verified> {
  const cid = learnt.ipfs_cid ?? ''
  const answer = await fetch(`${store.url}/api/v0/cat?arg=${cid}`, { method: 'POST' })
  const content = Buffer.from(await answer.arrayBuffer())
  const isStored = answer.ok && isOf(content, cid) && JSON.parse(String(content)).content === learnt.content
  const viem = await import('viem')
  const client = viem.createPublicClient({ transport: viem.http(anvil.url) })
  const id = `0x${createHash('sha256').update(learnt.id).digest('hex')}` as const
  const address = viem.getAddress(contract)
  const [, , recorded] = await client.readContract({ address, abi: REGISTRY_ABI, functionName: 'recordOf', args: [id] })
  const events = await client.getContractEvents({
    ...{ address, abi: REGISTRY_ABI, eventName: 'Recorded', args: { id } },
    ...{ fromBlock: 'earliest', toBlock: 'latest' },
  })
  const [event] = events
  const isRecorded = recorded === cid && events.length === 1 && event?.transactionHash === learnt.chain_tx_hash
  const head = await client.getBlockNumber({ cacheTime: 0 })
  return { isStored, isRecorded, confirmations: event === undefined ? 0 : Number(head - event.blockNumber) }
}

/** CIDv1 of one raw block: base 32 of 01 55 12 20 and the SHA-256, compared by its bits. */
function isOf(content: Buffer, cid: string): boolean {
  const bytes = Buffer.concat([Buffer.from('01551220', 'hex'), createHash('sha256').update(content).digest()])
  const expected = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const digits = 'abcdefghijklmnopqrstuvwxyz234567'
  const bits = [...cid.slice(1)].map((digit) => digits.indexOf(digit).toString(2).padStart(5, '0')).join('')
  return cid.startsWith('b') && bits.startsWith(expected)
}

/** Those of the strings that stand in any file of the folder, or in the other texts. */
export function leaks(folder: string, texts: readonly string[], raw: readonly string[]): readonly string[] {
  const files = globSync('**/*', { cwd: folder })
    .map((name) => path.join(folder, name))
    .filter((file) => statSync(file).isFile())
  const contents = [...files.map((file) => readFileSync(file)), Buffer.from(texts.join('\n'))]
  return raw.filter((text) => contents.some((content) => content.includes(text)))
}
