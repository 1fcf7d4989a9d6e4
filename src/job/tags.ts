import { OptionError } from '../errors.ts'

/** Every tag is a row of an index on SQLite and Postgres, and a chip on the dashboard. */
export const TAGS_MAX = 10
export const TAG_LENGTH_MAX = 64

/** Each once, in the order given. */
export function checkTags(tags: readonly string[]): readonly string[] {
  if (!Array.isArray(tags)) throw new OptionError(`'tags' is not a list; give one, such as ['import-7']`)
  const distinct = [...new Set(tags)]
  const bad = distinct.find((tag) => !isTag(tag))
  if (bad !== undefined)
    throw new OptionError(`'tags' has a tag that is not 1 to ${TAG_LENGTH_MAX} printable characters`)
  if (distinct.length > TAGS_MAX)
    throw new OptionError(`'tags' has ${distinct.length} tags; give at most ${TAGS_MAX} for one job`)
  return distinct
}

/** Spaces at the ends would be invisible where tags are shown. */
function isTag(tag: unknown): boolean {
  if (typeof tag !== 'string' || tag.length < 1 || tag.length > TAG_LENGTH_MAX) return false
  return tag.isWellFormed() && !/\p{Cc}/u.test(tag) && tag.trim() === tag
}

/** Another program may have written anything into the options. */
export function tagsOf(options: { readonly tags?: unknown } | null): readonly string[] {
  const tags = options?.tags
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : []
}
