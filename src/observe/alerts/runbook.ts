/** The page of the package that says what to do about each alert, from its root. */
export const RUNBOOK = 'docs/runbook.md'

/** Where the runbook has this entry. Anchors are those that GitHub makes of headings. */
export function runbookEntry(heading: string): string {
  return `${RUNBOOK}#${heading.toLowerCase()}`
}
