import { NonRetryable } from '../../../src/errors.ts'
import type { Log } from '../../../src/job/definition.ts'
import type { Fees, Hex } from './chain.ts'
import { readKey } from './keys.ts'
import { loadViem } from './viem.ts'

export interface Call {
  readonly nonce: number
  /** Null for a new contract. */
  readonly to: Hex | null
  readonly data: Hex
  readonly gas: bigint
  readonly fees: Fees
}

export interface Signed {
  readonly hash: Hex
  readonly raw: Hex
}

/** Signs for one chain. The key stays in here, and is gone with the run of the handler. */
export interface Signer {
  readonly address: Hex
  sign(call: Call): Promise<Signed>
}

export async function openSigner(
  privateKeyRef: string,
  { chainId }: { readonly chainId: number },
  log: Pick<Log, 'warn'>,
): Promise<Signer> {
  const key = await readKey(privateKeyRef, { environment: process.env, log })
  const { viem, accounts } = await loadViem()
  const account = accountOf(accounts, key, privateKeyRef)
  return {
    address: account.address,
    async sign({ nonce, to, data, gas, fees }) {
      const raw = await account.signTransaction({ type: 'eip1559', chainId, nonce, to, data, gas, ...fees })
      return { raw, hash: viem.keccak256(raw) }
    },
  }
}

function accountOf(accounts: typeof import('viem/accounts'), key: Hex, reference: string) {
  try {
    return accounts.privateKeyToAccount(key)
  } catch {
    // Without the cause: its message contains the key.
    throw new NonRetryable(`${reference} holds no valid key of secp256k1`)
  }
}

/** Nodes accept a replacement only when both fees rise by 10 %; some ask for 12.5 %. */
export function raiseFees(raw: Fees, suggested: Fees): Fees {
  const raised = (fee: bigint): bigint => (fee * 1125n) / 1000n + 1n
  const larger = (one: bigint, other: bigint): bigint => (one > other ? one : other)
  return {
    maxFeePerGas: larger(raised(raw.maxFeePerGas), suggested.maxFeePerGas),
    maxPriorityFeePerGas: larger(raised(raw.maxPriorityFeePerGas), suggested.maxPriorityFeePerGas),
  }
}

/** The call that stored bytes make. */
export async function parseCall(raw: Hex): Promise<Call> {
  const { viem } = await loadViem()
  const { nonce = 0, to, data = '0x', gas, maxFeePerGas, maxPriorityFeePerGas = 0n } = viem.parseTransaction(raw)
  if (!to || gas === undefined || maxFeePerGas === undefined)
    throw new Error('stored bytes are no call of the registry')
  return { nonce, to, data, gas, fees: { maxFeePerGas, maxPriorityFeePerGas } }
}
