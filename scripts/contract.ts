/** `npm run contract`: compiles LearningRegistry.sol with solc and writes its ABI and bytecode beside it. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const FOLDER = fileURLToPath(new URL('../workloads/conversations/upload/contract/', import.meta.url))
const SOURCE = 'LearningRegistry.sol'
const COMPILER = '0.8.37'

const compiled = z.object({
  errors: z.array(z.object({ severity: z.string(), formattedMessage: z.string() })).default([]),
  contracts: z.object({
    [SOURCE]: z.object({
      LearningRegistry: z.object({
        abi: z.array(z.unknown()),
        evm: z.object({ bytecode: z.object({ object: z.string() }) }),
      }),
    }),
  }),
})

export interface Contract {
  readonly abi: readonly unknown[]
  readonly bytecode: string
}

export function compileContract(): Contract {
  const solc: unknown = createRequire(import.meta.url)('solc')
  if (!isCompiler(solc)) throw new Error('solc is not what it was; npm ci installs the right version')
  if (!solc.version().startsWith(`${COMPILER}+`)) {
    throw new Error(`solc is ${solc.version()}, not ${COMPILER}; another compiler makes other bytecode`)
  }
  const input = {
    language: 'Solidity',
    sources: { [SOURCE]: { content: readFileSync(path.join(FOLDER, SOURCE), 'utf8') } },
    settings: {
      evmVersion: 'paris',
      optimizer: { enabled: true, runs: 200 },
      // Without it the bytecode would change with every comment.
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  }
  const output = compiled.parse(JSON.parse(solc.compile(JSON.stringify(input))))
  if (output.errors.length > 0) throw new Error(output.errors.map((one) => one.formattedMessage).join('\n'))
  const { abi, evm } = output.contracts[SOURCE].LearningRegistry
  return { abi, bytecode: `0x${evm.bytecode.object}` }
}

interface Compiler {
  version(): string
  compile(input: string): string
}

function isCompiler(module: unknown): module is Compiler {
  return typeof module === 'object' && module !== null && 'compile' in module && 'version' in module
}

if (import.meta.main) {
  const { abi, bytecode } = compileContract()
  const file = path.join(FOLDER, 'learning-registry.ts')
  writeFileSync(
    file,
    `// Written by \`npm run contract\` from ${SOURCE}, with solc ${COMPILER}. Do not edit.

export const REGISTRY_ABI = ${JSON.stringify(abi)} as const

export const REGISTRY_BYTECODE = '${bytecode}'
`,
  )
  execFileSync(fileURLToPath(new URL('../node_modules/.bin/biome', import.meta.url)), ['check', '--write', file])
}
