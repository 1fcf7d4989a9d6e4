/** Reads the project's own source for the laws: which files there are, and what in them is code. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { blank } from './blank.ts'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface SourceFile {
  /** From the root, with forward slashes. */
  readonly path: string
  readonly text: string
  /** The text with comments and the insides of strings blanked; lines and columns stay where they are. */
  readonly code: string
}

/** The TypeScript files below the folders given, with or without tests. */
export function sourceFiles(folders: readonly string[], options: { readonly tests: boolean }): readonly SourceFile[] {
  const patterns = folders.map((folder) => `${folder}/**/*.ts`)
  return globSync(patterns, { cwd: ROOT })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => options.tests || !isTest(file))
    .toSorted()
    .map((file) => {
      const text = readFileSync(path.join(ROOT, file), 'utf8')
      return { path: file, text, code: blank(text) }
    })
}

export function isTest(file: string): boolean {
  return file.endsWith('.test.ts')
}

/** Where a pattern occurs in the code: `path:line: the line`. */
export function places(file: SourceFile, pattern: RegExp): readonly string[] {
  const lines = file.text.split('\n')
  return file.code
    .split('\n')
    .flatMap((line, index) => (pattern.test(line) ? [`${file.path}:${index + 1}: ${lines[index]?.trim()}`] : []))
}
