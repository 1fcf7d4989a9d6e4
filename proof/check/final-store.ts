import { lookupOf } from '../../src/engine/capability-checks.ts'
import type { AuditEntry } from '../../src/engine/dead-letters.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { JobView } from '../../src/job/job.ts'

/** What the store has once everything has finished. */
export interface FinalStore {
  /** Those of the history that are still there. Empty where `canFind` is false. */
  readonly jobs: ReadonlyMap<string, JobView>
  /** False where the engine keeps no states of jobs: rules about them are judged from the history alone. */
  readonly canFind: boolean
  /** The ids of the dead letters that are listed. */
  readonly letters: ReadonlySet<string>
  /** Oldest first. */
  readonly audit: readonly AuditEntry[]
}

const PAGE = 500

/** Reads what the rules need about the jobs with these ids. */
export async function readFinalStore(engine: Engine, ids: readonly string[]): Promise<FinalStore> {
  const jobs = new Map<string, JobView>()
  const canFind = engine.inspector !== undefined
  if (canFind) {
    for (let from = 0; from < ids.length; from += PAGE) {
      for (const view of await lookupOf(engine).find(ids.slice(from, from + PAGE))) {
        if (view !== null) jobs.set(view.id, view)
      }
    }
  }
  return {
    jobs,
    canFind,
    letters: await readLetters(engine),
    audit: await readAudit(engine),
  }
}

async function readLetters({ deadLetters }: Engine): Promise<ReadonlySet<string>> {
  const ids = new Set<string>()
  if (deadLetters === undefined) return ids
  let after: { readonly completedAtMs: number; readonly id: string } | undefined
  for (;;) {
    const page = await deadLetters.list({ limit: PAGE, ...(after !== undefined && { after }) })
    for (const { job } of page) ids.add(job.id)
    const last = page.at(-1)?.job
    if (last === undefined || page.length < PAGE) return ids
    after = { completedAtMs: last.completedAtMs ?? 0, id: last.id }
  }
}

async function readAudit({ deadLetters }: Engine): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = []
  if (deadLetters === undefined) return entries
  for (;;) {
    const before = entries.at(-1)?.seq
    const page = await deadLetters.audit({ limit: PAGE, ...(before !== undefined && { before }) })
    entries.push(...page)
    if (page.length < PAGE) return entries.reverse()
  }
}
