import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'

interface PageProps {
  readonly title: string
  /** One sentence about the page. */
  readonly lead?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly above?: ComponentChildren
  readonly children: ComponentChildren
}

export function PageFrame({ title, lead, actions, above, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Millrace`
  }, [title])
  return (
    <>
      {above}
      <header class="page-head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {lead !== undefined && <p class="lead">{lead}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  )
}

export function Card(props: {
  readonly title?: string
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
  readonly look?: string
}) {
  return (
    <section class={`card ${props.look ?? ''}`}>
      {props.title !== undefined && (
        <header class="card-head">
          <h2>{props.title}</h2>
          {props.aside}
        </header>
      )}
      {props.children}
    </section>
  )
}
