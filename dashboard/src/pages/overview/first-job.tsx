import { CopyButton } from '../../parts/id.tsx'
import { EmptyState } from '../../parts/states.tsx'

const DEFINE = `import { defineJob } from 'millrace'

export const greet = defineJob({
  type: 'greet',
  async run({ payload }) {
    return \`Hello \${payload.name}\`
  },
})`

const STEPS: readonly { readonly text: string; readonly code: string }[] = [
  { text: '1. Define the job in jobs.ts:', code: DEFINE },
  { text: '2. Start a worker for it:', code: 'millrace work jobs.ts' },
  { text: '3. Enqueue a job and watch it here:', code: `millrace enqueue greet '{"name":"Ada"}'` },
]

/** How to run the first job, while there is none. */
export function FirstJob() {
  return (
    <div class="card">
      <EmptyState icon="overview" title="No jobs yet">
        <p>Three steps to the first one. Pass each command the --engine of this server.</p>
        <ol class="steps">
          {STEPS.map(({ text, code }, index) => (
            <li key={text}>
              <p>{text}</p>
              <div class="snippet">
                <pre>
                  <code>{code}</code>
                </pre>
                <CopyButton text={code} what={`step ${index + 1}`} />
              </div>
            </li>
          ))}
        </ol>
      </EmptyState>
    </div>
  )
}
