import { routeTo } from '../router/route.ts'
import { tagTerm } from './search-words.ts'

interface TagsProps {
  readonly tags: readonly string[]
  readonly page?: 'jobs' | 'dead-letters'
}

/** Each leads to what has the same tag. */
export function Tags({ tags, page = 'jobs' }: TagsProps) {
  if (tags.length === 0) return null
  return (
    <span class="chips">
      {tags.map((tag) => (
        <a key={tag} class="chip" href={routeTo(page, null, { search: tagTerm(tag) })}>
          {tag}
        </a>
      ))}
    </span>
  )
}
