/** The runnable examples of a page: each TypeScript block that imports something, and the output that follows it. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface Example {
  readonly page: string
  readonly line: number
  readonly code: string
  /** Null when the page does not say what it prints. */
  readonly output: string | null
}

const BLOCK = /^```(\w+)\n([\s\S]*?)^```$/gm

export function examplesOf(page: string): readonly Example[] {
  return examplesIn(page, readFileSync(path.join(ROOT, page), 'utf8'))
}

export function examplesIn(page: string, text: string): readonly Example[] {
  const blocks = [...text.matchAll(BLOCK)]
  return blocks.flatMap(({ 1: language, 2: code = '', index }, position) => {
    if (language !== 'ts' || !/^import /m.test(code)) return []
    const next = blocks[position + 1]
    const output = next?.[1] === 'text' ? (next[2] ?? null) : null
    return [{ page, line: text.slice(0, index).split('\n').length, code, output }]
  })
}
