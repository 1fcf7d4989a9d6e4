import { type Page, routeTo } from '../router/route.ts'
import { shortId } from './format.ts'
import { Icon } from './icon.tsx'
import { useToast } from './toast.tsx'

interface CopyButtonProps {
  readonly text: string
  /** What is copied, for the message and for the button's name. */
  readonly what: string
  /** Words on the button, instead of an icon alone. */
  readonly words?: string
}

export function CopyButton({ text, what, words }: CopyButtonProps) {
  const toast = useToast()
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      toast({ text: `Copied ${what}` })
    } catch {
      toast({ text: `The browser does not allow this page to copy. Select ${what} and copy it.`, tone: 'warn' })
    }
  }
  if (words !== undefined) {
    return (
      <button type="button" class="button small" title={`Copy ${what}`} onClick={copy}>
        <Icon name="copy" />
        {words}
      </button>
    )
  }
  return (
    <button type="button" class="icon-button" aria-label={`Copy ${what}`} title={`Copy ${what}`} onClick={copy}>
      <Icon name="copy" />
    </button>
  )
}

/** A job's id, short, linked to its page. */
export function JobId({ id, page = 'jobs' }: { readonly id: string; readonly page?: Page }) {
  return (
    <span class="id">
      <a href={routeTo(page, id)} title={id}>
        {shortId(id)}
      </a>
      <CopyButton text={id} what={`id ${shortId(id)}`} />
    </span>
  )
}
