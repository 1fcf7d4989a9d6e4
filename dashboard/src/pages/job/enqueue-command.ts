import type { JobDetail } from '../../api/shapes.ts'

/** For a POSIX shell. */
function quoted(text: string): string {
  return /^[\w./:@=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * The command that enqueues a job like this one, without its key. Secrets are not sent to the page, so a payload with one
 * has its placeholder, which the command refuses: it says where a value has to be typed.
 */
export function enqueueCommand({ type, payload, priority, attempts, tenant, tags, options }: JobDetail): string {
  const name = options?.name
  const given = [
    ['name', typeof name === 'string' ? name : null],
    ['priority', String(priority)],
    ['attempts', String(attempts)],
    ['tenant', tenant === null ? null : [tenant.orgId, tenant.workspaceId].filter(Boolean).join('/')],
  ] as const
  const flags = given.flatMap(([flag, value]) => (value === null ? [] : [`--${flag} ${quoted(value)}`]))
  const tagged = tags.map((tag) => `--tag ${quoted(tag)}`)
  return ['millrace enqueue', quoted(type), quoted(JSON.stringify(payload)), ...flags, ...tagged].join(' ')
}
