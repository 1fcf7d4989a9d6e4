import type { JobSearch } from '../../job/search.ts'

/**
 * Texts that the row of every match contains, so that a database can leave out most others without showing them. Texts
 * that may be written in more than one way, such as letters beyond ASCII or quotes in JSON, are not among them.
 */
export interface SearchTexts {
  /** In lower case, in the error. */
  readonly errors: readonly string[]
  /** In lower case, anywhere in the columns that words are looked for in. */
  readonly words: readonly string[]
  readonly payload: readonly string[]
}

export function searchTexts({ errors, words, payload }: JobSearch): SearchTexts {
  return {
    errors: errors.filter(isPlain).map((text) => text.toLowerCase()),
    words: words.filter(isPlain).map((text) => text.toLowerCase()),
    // Fractions and very large numbers have several forms, and other programs write a slash with a backslash before it.
    payload: payload.map(({ value }) => value).filter((text) => /^([A-Za-z_][\w@.-]*|\d{1,15})$/.test(text)),
  }
}

function isPlain(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text) && !/["\\]/.test(text)
}

/** The organisations that `tenant:` may mean: a slash in it may begin the workspace. */
export function organisationsOf(tenant: string): readonly string[] {
  const parts = tenant.split('/')
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}
