import type { JobDetail } from '../../api/shapes.ts'
import { Card } from '../../parts/page.tsx'

interface ErrorCardProps {
  readonly error: NonNullable<JobDetail['error']>
  readonly title: string
}

/** The handler's error, always as text. */
export function ErrorCard({ error, title }: ErrorCardProps) {
  return (
    <Card title={title} look="error-card">
      <p class="error-message">{error.message}</p>
      <p class="quiet">
        {error.name}
        {error.code !== null && error.code !== error.name && (
          <>
            {' '}
            · <code>{error.code}</code>
          </>
        )}
      </p>
      {error.stack !== null && (
        <details>
          <summary>Where it was thrown</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keyboard users need to reach it */}
          <pre class="stack" tabIndex={0}>
            {error.stack}
          </pre>
        </details>
      )}
    </Card>
  )
}
