import { spawn } from 'node:child_process'

/** How long a program may take: one that waits for a store which does not answer is ended, and what it did is unknown. */
const LIMIT_MS = 20_000

export interface ProgramCall {
  readonly program: string
  readonly args: readonly string[]
  readonly input: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs a program to its end. Rejects with what it said unless it ended with 0. */
export async function runProgram({ program, args, input, env = {} }: ProgramCall): Promise<void> {
  const child = spawn(program, args, {
    stdio: ['pipe', 'ignore', 'pipe'],
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
    env: { ...process.env, ...env },
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    errors += chunk
  })
  // One that ends early reads no more; its exit code tells.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${errors}`)
}
