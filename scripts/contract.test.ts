import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REGISTRY_ABI, REGISTRY_BYTECODE } from '../workloads/conversations/upload/contract/learning-registry.ts'
import { compileContract } from './contract.ts'

test('the ABI and bytecode that are kept are those of the source', () => {
  assert.deepEqual(compileContract(), { abi: [...REGISTRY_ABI], bytecode: REGISTRY_BYTECODE })
})
