import { EngineError } from '../../../src/errors.ts'

/** viem is loaded when the first learning is uploaded, so that programs that upload nothing need not install it. */
export async function loadViem(): Promise<{
  readonly viem: typeof import('viem')
  readonly accounts: typeof import('viem/accounts')
}> {
  try {
    const [viem, accounts] = await Promise.all([import('viem'), import('viem/accounts')])
    return { viem, accounts }
  } catch (error) {
    throw new EngineError('ERR_MODULE_MISSING', 'To upload learnings: npm install viem', { cause: error })
  }
}
