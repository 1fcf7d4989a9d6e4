/** A real EVM chain on loopback: anvil, which npm installs where it has a binary. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { REGISTRY_BYTECODE } from '../../workloads/conversations/upload/contract/learning-registry.ts'

const PROGRAM = fileURLToPath(new URL('../../node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil', import.meta.url))

/** False, or why tests of the chain are skipped. */
export const anvilMissing: string | false = existsSync(PROGRAM)
  ? false
  : 'anvil is not installed: npm has it for linux-x64'

export const ANVIL_CHAIN_ID = 31_337

export interface Anvil {
  readonly url: string
  readonly port: number
  call(method: string, params?: readonly unknown[]): Promise<unknown>
  mine(blocks: number): Promise<void>
  /** From an account that the node holds itself. Returns the hash; it is mined with the next block. */
  sendTransaction(fields: Readonly<Record<string, string>>): Promise<string>
  deployRegistry(): Promise<string>
  stop(): Promise<void>
}

/**
 * Blocks are mined only when `mine` is called: anvil's own mining comes at some moment after the answer. Give other `args`,
 * such as `['--block-time', '1']`, for a chain that runs by itself. `port` 0 chooses a free one.
 */
export async function startAnvil({
  port = 0,
  args = ['--no-mining'],
}: {
  port?: number
  args?: readonly string[]
} = {}): Promise<Anvil> {
  const child = spawn(PROGRAM, ['--host', '127.0.0.1', '--port', String(port), ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const killed = (): boolean => child.kill('SIGKILL')
  process.once('exit', killed)
  const opened = await listening(child)
  const url = `http://127.0.0.1:${opened}`
  let calls = 0
  const call = async (method: string, params: readonly unknown[] = []): Promise<unknown> => {
    calls += 1
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: calls, method, params }),
    })
    const { result, error } = JSON.parse(await response.text())
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result
  }
  const account = async (): Promise<string> => String(Object(await call('eth_accounts'))[0])
  const sendTransaction = async (fields: Readonly<Record<string, string>>): Promise<string> =>
    String(await call('eth_sendTransaction', [{ from: await account(), ...fields }]))
  return {
    url,
    port: opened,
    call,
    sendTransaction,
    async mine(blocks) {
      await call('anvil_mine', [`0x${blocks.toString(16)}`])
    },
    async deployRegistry() {
      const hash = await sendTransaction({ data: REGISTRY_BYTECODE, gas: '0x1e8480' })
      await call('anvil_mine', ['0x1'])
      return String(Object(await call('eth_getTransactionReceipt', [hash])).contractAddress)
    },
    async stop() {
      process.removeListener('exit', killed)
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await exited
    },
  }
}

function listening(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    if (child.stdout === null) throw new Error('anvil has no output')
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`anvil ended with ${code}`)))
    // Every line is read, or the pipe would fill and block it.
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [, port] = /^Listening on \S+:(\d+)/.exec(line) ?? []
      if (port !== undefined) resolve(Number(port))
    })
  })
}
