/** `millrace conversations deploy`. */
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { deployRegistry } from '../upload/contract/deploy.ts'

export async function deploy({ options, clock, json, terminal }: CommandCall): Promise<void> {
  const [rpcUrl, chainId, privateKeyRef] = [String(options.rpcUrl), Number(options.chainId), String(options.keyRef)]
  const log = { warn: (message: string) => terminal.complain(message) }
  const { address, txHash } = await deployRegistry({ rpcUrl, chainId, privateKeyRef, clock, log })
  if (json) terminal.print(JSON.stringify({ address, txHash, chainId }))
  else terminal.print(`LearningRegistry is at ${address} on chain ${chainId} (transaction ${txHash}).`)
}
