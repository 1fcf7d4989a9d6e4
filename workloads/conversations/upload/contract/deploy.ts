import { z } from 'zod'
import { NonRetryable } from '../../../../src/errors.ts'
import type { Log } from '../../../../src/job/definition.ts'
import { silentLog } from '../../../../src/observe/log.ts'
import { systemClock } from '../../../../src/time/clock.ts'
import type { UploadSettings } from '../../options.ts'
import { checkChainId, suggestFees } from '../chain.ts'
import type { Caller } from '../request.ts'
import { hexText, quantity, Rpc } from '../rpc.ts'
import { openSigner } from '../signing.ts'
import { REGISTRY_BYTECODE } from './learning-registry.ts'

export type DeployOptions = Pick<UploadSettings, 'rpcUrl' | 'chainId' | 'privateKeyRef'> &
  Partial<Caller> & { readonly log?: Pick<Log, 'warn'> }

export interface DeployedRegistry {
  /** For `contractAddress` of the settings. */
  readonly address: string
  readonly txHash: string
}

const POLL_MS = 500

const receiptSchema = z.object({ status: quantity, contractAddress: hexText.nullable() })

/**
 * Deploys a LearningRegistry of its own and waits until it is mined. Once for a chain: every call makes another one.
 *
 * @example
 * const { address } = await deployRegistry({ rpcUrl: 'http://127.0.0.1:8545', chainId: 31337, privateKeyRef: 'env:WALLET' })
 */
export async function deployRegistry(options: DeployOptions): Promise<DeployedRegistry> {
  const { fetch: send = fetch, clock = systemClock, signal = new AbortController().signal } = options
  const rpc = new Rpc(options.rpcUrl, { fetch: send, clock, signal })
  await checkChainId(rpc, options.chainId)
  const signer = await openSigner(options.privateKeyRef, options, options.log ?? silentLog)
  const [nonce, gas, fees] = await Promise.all([
    rpc.call('eth_getTransactionCount', [signer.address, 'pending'], quantity),
    rpc.call('eth_estimateGas', [{ from: signer.address, data: REGISTRY_BYTECODE }], quantity),
    suggestFees(rpc),
  ])
  const call = { nonce: Number(nonce), to: null, data: REGISTRY_BYTECODE, gas: (gas * 12n) / 10n, fees } as const
  const { raw, hash } = await signer.sign(call)
  await rpc.call('eth_sendRawTransaction', [raw], hexText)
  for (;;) {
    const receipt = await rpc.call('eth_getTransactionReceipt', [hash], receiptSchema.nullable())
    if (receipt?.status === 1n && receipt.contractAddress !== null) {
      return { address: receipt.contractAddress, txHash: hash }
    }
    if (receipt !== null) throw new NonRetryable(`the transaction ${hash} failed, so nothing was deployed`)
    await clock.sleep(POLL_MS, signal)
    signal.throwIfAborted()
  }
}
